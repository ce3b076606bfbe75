package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/features/discover"
	"github.com/presage-router/presage/features/fleet"
)

// firstEndpoints fills the fleet before anything is served, so that what is wrong with an endpoints
// file ends the start and not the service.
func (s *Service) firstEndpoints() error {
	list := s.deps.Endpoints
	if list == nil && s.cfg.Fleet.File != "" {
		var err error
		if list, err = discover.Load(s.cfg.Fleet.File); err != nil {
			return err
		}
	}
	return s.SetEndpoints(list)
}

// SetEndpoints makes the fleet exactly the given endpoints. Open requests on removed ones stay
// accounted for until they end. It is for services without a source of endpoints of their own.
func (s *Service) SetEndpoints(list []*fleet.Endpoint) error {
	change, err := s.fleet.Sync(time.Now(), list)
	if err != nil {
		return fmt.Errorf("endpoints: %w", err)
	}
	s.changed(change)
	return nil
}

// newSource is where a configuration says that endpoints come from.
func newSource(f *config.Fleet) discover.Source {
	if f.File != "" {
		return &discover.File{Path: f.File}
	}
	return &discover.DNS{
		Name: f.DNS.Name, Port: uint16(f.DNS.Port),
		Endpoint: fleet.Endpoint{Model: f.DNS.Model, Engine: f.DNS.Engine, TP: 1},
	}
}

// follow keeps the fleet at what its source says, until ctx is done.
func (s *Service) follow(ctx context.Context) {
	if s.source == nil {
		return
	}
	discover.Follow(ctx, s.fleet, s.source, func(c fleet.Change, err error) {
		if err != nil {
			s.log.Warn("endpoints could not be read; the last good ones stay", "error", err)
			return
		}
		s.changed(c)
	})
}

// changed reacts to a change of the set of endpoints.
func (s *Service) changed(c fleet.Change) {
	for _, r := range c.Removed {
		s.index.Remove(r)
	}
	if !c.Empty() {
		s.log.Info("endpoints changed", "added", len(c.Added), "removed", len(c.Removed), "updated", len(c.Updated), "generation", c.Gen)
	}
	if len(c.Added) > 0 && !s.seen.Swap(true) {
		s.ext.SetReady(true)
	}
}

// whyNotReady says what keeps the service from being ready: it is once it has had an endpoint, and
// then answers 503 by itself, with a reason, should all of them leave.
func (s *Service) whyNotReady() error {
	switch {
	case s.draining.Load():
		return errors.New("draining")
	case !s.seen.Load():
		return errors.New("no endpoint has been found yet")
	}
	return nil
}

// CheckFiles reads the files that a configuration names, as the service would at its start, and
// returns everything that is wrong with them. Nothing is dialled.
func CheckFiles(c *config.Config) error {
	var errs []error
	if c.Fleet.File != "" {
		if _, err := discover.Load(c.Fleet.File); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := secure(&c.TLS, time.Now()); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
