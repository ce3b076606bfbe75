package extproc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"
)

// SelfSigned returns a TLS configuration with a certificate that was made just now and is kept in
// memory only: it encrypts, but proves nothing to the gateway.
func SelfSigned(now time.Time) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot generate a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("cannot generate a serial number: %w", err)
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "presage"},
		DNSNames:     []string{"localhost", "presage"},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}, nil
}

// Files returns a TLS configuration with the certificate and key of two PEM files. They are read
// again when they change; while the new ones do not fit together the old ones stay in force.
func Files(cert, key string) (*tls.Config, error) {
	p := &keyPair{cert: cert, key: key}
	if err := p.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.get}, nil
}

// keyPair is a certificate that follows its files.
type keyPair struct {
	cert, key string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed [2]time.Time // modification times of the files when last tried
}

func (p *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.times() != p.changed {
		_ = p.load() // the last good certificate serves on
	}
	return p.loaded, nil
}

func (p *keyPair) load() error {
	p.changed = p.times()
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return fmt.Errorf("cannot load certificate %q with key %q: %w", p.cert, p.key, err)
	}
	p.loaded = &c
	return nil
}

func (p *keyPair) times() (t [2]time.Time) {
	for i, name := range []string{p.cert, p.key} {
		if info, err := os.Stat(name); err == nil {
			t[i] = info.ModTime()
		}
	}
	return t
}
