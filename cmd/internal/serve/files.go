package serve

import (
	"time"

	"github.com/presage-router/presage/router/admin"
)

// openFiles opens what the service keeps on disk.
func (s *Service) openFiles() (err error) {
	if s.journal, err = openJournal(&s.cfg.Trace); err == nil {
		s.library, err = openLibrary(&s.cfg.Models, s.log, time.Now())
	}
	return err
}

// closeFiles closes it; more than once does no harm.
func (s *Service) closeFiles() {
	s.journal.close(s.log)
	if s.library != nil {
		_ = s.library.Close() // every file in it is synced
	}
}

// learnFirst has the learner know, before it runs, what was learned before and which endpoints there are.
func (s *Service) learnFirst() {
	now := time.Now()
	if s.library != nil {
		s.library.begin(s.tutor.learner, now)
	}
	s.tutor.meet(now)
	s.tutor.show()
}

// saveLearned writes what was learned. It is for the end, when nobody learns any more.
func (s *Service) saveLearned() {
	if s.library != nil {
		state := s.tutor.learner.Save()
		s.library.save(&state, s.tutor.learner.Counts, time.Now())
	}
}

// learning tells how learning goes.
func (s *Service) learning() admin.Learning {
	l := s.tutor.learning()
	if s.library != nil {
		l.Model, l.Files = *s.library.from.Load(), s.library.results()
	}
	return l
}
