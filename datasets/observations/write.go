package observations

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/presage-router/presage/datasets/observations/record"
	"github.com/presage-router/presage/features"
)

// Writer writes one file. It becomes visible, whole, at [Writer.Commit].
type Writer struct {
	path string
	file *os.File
	rows int

	parquet *parquet.GenericWriter[record.Record]
	lines   *bufio.Writer
}

// Format names a form of files.
type Format string

// The forms of files.
const (
	Parquet Format = "parquet"
	JSONL   Format = "jsonl"
)

// The metadata of a Parquet file.
const (
	keyVersion  = "presage.observations"
	keyFeatures = "presage.features"
	version     = "2"
)

const rowGroup = 50_000 // rows

// FormatOf is the form that a file of that name is to have, by its extension.
func FormatOf(path string) (Format, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".parquet":
		return Parquet, nil
	case ".jsonl":
		return JSONL, nil
	default:
		return "", fmt.Errorf("%s: extension %q: no form of export; use .parquet or .jsonl", path, ext)
	}
}

// Create begins a file beside the place that it is for, in the form that its extension names.
func Create(path string) (*Writer, error) {
	form, err := FormatOf(path)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be written: %w", path, reason(err))
	}
	w := &Writer{path: path, file: file}
	if form == JSONL {
		w.lines = bufio.NewWriterSize(file, 1<<16)
		return w, nil
	}
	w.parquet = parquet.NewGenericWriter[record.Record](file,
		parquet.Compression(&zstd.Codec{}),
		parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.KeyValueMetadata(keyVersion, version),
		parquet.KeyValueMetadata(keyFeatures, strings.Join(features.FieldNames(), ",")))
	return w, nil
}

// Write appends a record.
func (w *Writer) Write(o *features.Observation) error {
	var err error
	if w.parquet != nil {
		_, err = w.parquet.Write([]record.Record{record.Of(o)})
	} else {
		var line []byte
		if line, err = record.Append(nil, o); err == nil {
			_, err = w.lines.Write(line)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: row %d: cannot be written: %w", w.path, w.rows+1, reason(err))
	}
	w.rows++
	return nil
}

// Rows is the number of records written.
func (w *Writer) Rows() int { return w.rows }

// Commit completes the file and puts it in its place, where it replaces an older one.
func (w *Writer) Commit() error {
	var err error
	if w.parquet != nil {
		err = w.parquet.Close()
	} else {
		err = w.lines.Flush()
	}
	if err == nil {
		err = w.file.Chmod(0o640)
	}
	if err == nil {
		err = w.file.Sync()
	}
	if e := w.file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(w.file.Name(), w.path)
	}
	if err != nil {
		_ = os.Remove(w.file.Name()) // nobody reads it
		return fmt.Errorf("%s: cannot be written: %w", w.path, reason(err))
	}
	return nil
}

// Abort gives the file up. After Commit it does nothing.
func (w *Writer) Abort() {
	if w.file.Close() == nil { // not committed
		_ = os.Remove(w.file.Name()) // nobody reads it
	}
}

// reason is an error of the operating system without the path.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
