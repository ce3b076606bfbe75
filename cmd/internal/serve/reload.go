package serve

import (
	"slices"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/router"
)

// Reload reads the configuration file again and brings what can change while serving into force. A
// file with errors changes nothing: they are returned, logged and counted, and the last good
// configuration goes on.
func (s *Service) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, warnings, err := config.Load(s.deps.Path, Policies().Names())
	for _, w := range warnings {
		s.log.Warn("configuration", "problem", w.String())
	}
	if err == nil {
		err = s.apply(next)
	}
	s.metrics.Reloaded(time.Now(), s.generation, err == nil)
	if err != nil {
		s.log.Error("configuration refused; the last good one serves on", "generation", s.generation, "error", err)
		return err
	}
	s.log.Info("configuration in force", "generation", s.generation, "policy", next.Policy)
	return nil
}

// apply brings a checked configuration into force, all of it or, with an error, nothing.
func (s *Service) apply(next *config.Config) error {
	parser, err := s.parser(next)
	if err != nil {
		return err
	}
	var policy router.Policy
	if !samePolicy(s.cfg, next) {
		if policy, err = s.compose(s.cfg, next); err != nil {
			return err
		}
	}
	if keys := atNextStart(s.cfg, next); len(keys) > 0 {
		s.log.Warn("some changes of the configuration take effect at the next start only", "keys", keys)
	}
	if policy != nil {
		s.use(policy)
	}
	s.ext.SetParser(parser)
	s.ext.SetAnswer(answer(next))
	s.router.SetStrict(next.Request.UnknownModel == config.Unknown404)
	if s.deps.Level != nil {
		s.deps.Level.Set(next.Log.Level)
	}
	s.cfg = next
	s.generation++
	return nil
}

// use makes a policy decide from the next request on.
func (s *Service) use(p router.Policy) {
	s.router.SetPolicy(p)
	s.follows(p)
}

// atNextStart names the keys whose change a running service cannot follow.
func atNextStart(was, next *config.Config) []string {
	var keys []string
	for _, k := range []struct {
		name string
		same bool
	}{
		{"listen", was.Listen == next.Listen},
		{"tls", was.TLS == next.TLS},
		{"admin", was.Admin.Token == next.Admin.Token && slices.Equal(was.Admin.Hosts, next.Admin.Hosts)},
		{"fleet", was.Fleet == next.Fleet},
		{"outliers", was.Outliers == next.Outliers},
		{"models", was.Models == next.Models},
		{"trace", was.Trace == next.Trace},
		{"request.max_body", was.Request.MaxBody == next.Request.MaxBody},
		{"request.total_bytes", was.Request.TotalBytes == next.Request.TotalBytes},
		{"request.decision_deadline", was.Request.DecisionDeadline == next.Request.DecisionDeadline},
	} {
		if !k.same {
			keys = append(keys, k.name)
		}
	}
	return keys
}
