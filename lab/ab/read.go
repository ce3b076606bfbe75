package ab

import (
	"context"
	"errors"
	"fmt"

	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
)

// Read reads the logs twice and says what they show. Progress is told how many rows of which reading, 1 or 2; nil:
// nobody is. Errors name the file, and the row or the column, and what to do; ctx ends the reading.
func Read(ctx context.Context, paths []string, o Options, progress func(pass, rows int)) (*Result, error) {
	var survey Survey
	pass, rows := 0, 0
	each := func(add func(file int, o *features.Observation) error) ([]File, error) {
		var files []File
		pass, rows = pass+1, 0
		for i, path := range paths {
			rep, err := observations.Scan(path, func(o *features.Observation) error {
				if rows++; rows%1000 == 0 {
					if err := ctx.Err(); err != nil {
						return err
					}
					if progress != nil {
						progress(pass, rows)
					}
				}
				return add(i, o)
			})
			if err == nil && rep.Kept == 0 {
				err = empty(rep)
			}
			if err != nil {
				return nil, locate(paths, path, rep.Rows, err)
			}
			files = append(files, File{Path: path, Rows: rep.Rows, Skipped: rep.Dropped})
		}
		return files, nil
	}
	files, err := each(func(i int, o *features.Observation) error {
		if err := survey.Add(i, o); err != nil {
			return &rowError{err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	plan, err := survey.Plan(o)
	if err != nil {
		return nil, err
	}
	ledger := plan.Ledger()
	if _, err := each(func(_ int, o *features.Observation) error { ledger.Add(o); return nil }); err != nil {
		return nil, err
	}
	r := ledger.Result()
	r.Files = files
	for _, f := range files {
		for why, n := range f.Skipped {
			r.note("%s: %d of %d rows left out: %s.", f.Path, n, f.Rows, why)
		}
	}
	return r, nil
}

// rowError is what a survey found in one row.
type rowError struct{ error }

// empty says why a file gave no record.
func empty(rep *observations.Report) error {
	if rep.First != nil {
		return rep.First
	}
	return fmt.Errorf("%s: empty: no records", rep.File)
}

// locate puts the place before what was wrong.
func locate(paths []string, path string, row int, err error) error {
	var bad *rowError
	if !errors.As(err, &bad) {
		return err
	}
	var twice *repeatError
	if errors.As(bad.error, &twice) {
		return fmt.Errorf("%s: row %d: id: %s is in %s too: the same requests would count twice; name each log once", path, row, twice.id, paths[twice.before])
	}
	return fmt.Errorf("%s: row %d: %w", path, row, bad.error)
}
