package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// Run serves until ctx ends, then drains for at most drain.timeout and returns nil. [Service.Stop]
// ends it at once, draining or not. An error means that a server failed; everything is ended then
// too. It returns with no goroutine and no socket left, and may be called once.
func (s *Service) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errTwice
	}
	// Three groups end one after the other: what serves the gateway, what keeps the router informed
	// (it still matters while draining), and what operators look at.
	var serving, informing, showing sync.WaitGroup
	informed, blind := context.WithCancel(s.stopped)
	defer blind()
	failed := make(chan error, 3)
	start := func(wg *sync.WaitGroup, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				failed <- err
			}
		})
	}
	for _, f := range []func(context.Context){s.follow, s.upkeep, s.scrape, s.tick, s.tutor.run, s.tend} {
		informing.Go(func() { f(informed) })
	}
	start(&serving, func() error { return s.ext.Serve(s.open.extproc) })
	if s.open.health != nil {
		start(&serving, func() error { return s.ext.ServeHealth(s.open.health) })
	}
	if s.open.admin != nil {
		start(&showing, func() error {
			if err := s.pages.Serve(s.open.admin); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("cannot serve on %s: %w", s.addrs.Admin, err)
			}
			return nil
		})
	}
	s.log.Info("serving", "extproc", s.addrs.ExtProc, "health", s.addrs.Health, "admin", s.addrs.Admin, "policy", s.router.Policy().Name())
	var err error
	select {
	case <-ctx.Done():
		s.drain()
	case <-s.stopped.Done():
	case err = <-failed:
		s.log.Error("serving ended", "error", err)
	}
	s.ext.Stop()
	serving.Wait()
	blind()
	informing.Wait()
	s.saveLearned()
	s.Stop()
	showing.Wait()
	s.closeFiles()
	return err
}

// drain lets running requests end.
func (s *Service) drain() {
	s.mu.Lock()
	timeout := s.cfg.Drain.Timeout
	s.mu.Unlock()
	s.draining.Store(true)
	s.log.Info("draining", "timeout", timeout)
	ctx, cancel := context.WithTimeout(s.stopped, timeout)
	defer cancel()
	s.ext.Shutdown(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && timeout > 0 {
		s.log.Warn("the drain period is over; what still ran was cut", "timeout", timeout)
	}
}

// Stop ends the service at once. It may be called at any time, instead of Run too, and repeatedly.
func (s *Service) Stop() {
	s.stop()
	s.ext.Stop()
	_ = s.pages.Close()
	s.open.close()
	if !s.ran.Load() {
		s.closeFiles() // otherwise Run does, when the last records have come
	}
}

func (s *Service) scrape(ctx context.Context) {
	if err := s.scraper.Run(ctx); err != nil {
		s.log.Error("engines are not scraped", "error", err)
	}
}
