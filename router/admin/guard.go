package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// front is in front of everything: it refuses names that a rebound DNS entry could carry, and tells
// browsers to run, embed and guess nothing.
func (p *pages) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if !p.allowed(r.Host) {
			refuse(w, http.StatusForbidden, "host name not allowed: call this address by its number, or add the name to admin.hosts")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allowed reports whether a Host header names this server: a page of an attacker whose name has been
// pointed here carries that name, never an address.
func (p *pages) allowed(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(p.Hosts, func(name string) bool { return host == strings.ToLower(name) })
}

// guard asks for the token, if there is one.
func (p *pages) guard(next http.Handler) http.Handler {
	if p.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(p.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token)) // equal lengths, so that comparing tells nothing of the token's
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="presage"`)
			refuse(w, http.StatusUnauthorized, "token missing or wrong: send admin.token as Authorization: Bearer")
			return
		}
		next.ServeHTTP(w, r)
	})
}
