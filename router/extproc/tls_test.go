package extproc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

func TestTLS(t *testing.T) {
	self, err := SelfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(c *tls.Config) {
		t.Helper()
		der, err := x509.MarshalPKCS8PrivateKey(c.Certificates[0].PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Certificates[0].Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
			if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Files(cert, key); err == nil {
		t.Error("absent files were taken")
	}
	write(self)
	files, err := Files(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]*tls.Config{"self-signed": self, "files": files} {
		l := newLab(t, labOptions{Options: Options{TLS: cfg}})
		pool := x509.NewCertPool()
		leaf, err := x509.ParseCertificate(self.Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		pool.AddCert(leaf)
		conn := l.dial(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "localhost"}), l.server.Serve)
		c := startCall(t, conn, wholeChat()...)
		if got := c.recv(2); got != "headers body+$" {
			t.Errorf("%s: replies %q", name, got)
		}
		plaintext := l.dial(insecure.NewCredentials(), l.server.Serve)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if _, err := grpc_health_v1.NewHealthClient(plaintext).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: plaintext: %v", name, err)
		}
		cancel()
	}
	serial := func() string {
		c, err := files.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.String()
	}
	old := serial()
	later := time.Now().Add(time.Hour)
	touch := func() {
		later = later.Add(time.Minute)
		for _, f := range []string{cert, key} {
			if err := os.Chtimes(f, later, later); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(key, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch()
	if got := serial(); got != old {
		t.Error("a broken key pair replaced a good one")
	}
	fresh, err := SelfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	write(fresh)
	touch()
	if got := serial(); got == old {
		t.Error("a new key pair is not used")
	}
}
