package prefix

import "testing"

func TestForget(t *testing.T) {
	x := NewIndex(Options{Total: 100, Default: 40})
	a, b := ref(0, 1), ref(3, 2)
	x.Insert(a, run(1, 30))
	x.Insert(b, run(1, 20))
	x.SetCapacity(b, 25)
	x.Remove(ref(5, 9))
	x.Forget()
	wantHits(t, match(x, run(1, 30), a, b), 0, 0)
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
	if st := x.Stats(); st.Blocks != 0 || st.Distinct != 0 {
		t.Errorf("%+v", st)
	}
	x.Insert(b, run(2, 40))
	wantHits(t, match(x, run(2, 40), a, b), 0, 25)
	if s, ok := x.Shelf(b); !ok || s.Capacity != 25 {
		t.Errorf("capacity %+v", s)
	}
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}

func TestRestart(t *testing.T) {
	x := NewIndex(Options{Total: 100, Default: 40})
	a, b := ref(0, 1), ref(3, 2)
	x.Insert(a, run(1, 30))
	x.Insert(b, run(1, 20))
	x.SetCapacity(b, 25)
	x.Restart(b)
	wantHits(t, match(x, run(1, 30), a, b), 30, 0)
	if st := x.Stats(); st.Blocks != 30 || st.Restarted != 20 {
		t.Errorf("%+v", st)
	}
	x.Insert(b, run(1, 30))
	wantHits(t, match(x, run(1, 30), a, b), 30, 25)
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}
