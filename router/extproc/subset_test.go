package extproc

import (
	"net/netip"
	"testing"
)

// FuzzAddresses: no hint of a gateway yields anything but addresses.
func FuzzAddresses(f *testing.F) {
	for _, s := range []string{"10.0.0.1:8000", "10.0.0.1", "[fd00::1]:8000", "fd00::1", "::ffff:10.0.0.1", " 10.0.0.1 , ,x:1", "10.0.0.1:99999", "fe80::1%eth0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, item []byte) {
		for _, a := range appendAddresses(nil, item) {
			if !a.Addr().IsValid() || a.Addr().Is4In6() {
				t.Fatalf("%q: %v", item, a)
			}
		}
	})
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1:8000": "10.0.0.1:8000", "10.0.0.1": "10.0.0.1:0", "[fd00::1]:8000": "[fd00::1]:8000", "fd00::1": "[fd00::1]:0", "::ffff:10.0.0.1": "10.0.0.1:0",
	} {
		got := appendAddresses(nil, []byte(in))
		if len(got) != 1 || got[0] != netip.MustParseAddrPort(want) {
			t.Errorf("%q: %v, want %s", in, got, want)
		}
	}
	if got := appendAddresses(nil, []byte(" 10.0.0.1\t")); len(got) != 1 {
		t.Errorf("spaces: %v", got)
	}
	for _, in := range []string{"", ",", "host:8000", "10.0.0.1:", "10.0.0.1:99999", "[fd00::1]"} {
		if got := appendAddresses(nil, []byte(in)); len(got) != 0 {
			t.Errorf("%q: %v", in, got)
		}
	}
}
