package datasets

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFaultyRecords(t *testing.T) {
	azure := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,4808,10\n"
	mooncake := `{"timestamp": 0, "input_length": 512, "output_length": 9, "hash_ids": [7]}` + "\n"
	for _, c := range []struct {
		name   string
		format Format
		text   string
		reason string // of the one dropped record
		first  string // in the first fault
	}{
		{"quote without end", Azure, azure + "\"2023-11-16 18:17:03,5,5\n2023-11-16 18:17:04,1,1\n", "bad quotes", "line 3"},
		{"text after a quote", Azure, azure + "\"2023\"x,5,5\n", "bad quotes", "line 3"},
		{"bad bytes", Azure, azure + "\xff\xfe,5,5\n", "not UTF-8", "line 3"},
		{"nan", Azure, azure + "2023-11-16 18:17:03,nan,5\n", "not finite", "ContextTokens: \"nan\""},
		{"inf", Azure, azure + "2023-11-16 18:17:03,inf,5\n", "not finite", "line 3"},
		{"hexadecimal", Azure, azure + "2023-11-16 18:17:03,0x10,5\n", "not an integer", "line 3"},
		{"underscore", Azure, azure + "2023-11-16 18:17:03,1_0,5\n", "not an integer", "line 3"},
		{"too large", Azure, azure + "2023-11-16 18:17:03,99999999999999,5\n", "out of range", "line 3"},
		{"too large for a float", Azure, azure + "2023-11-16 18:17:03,1e999,5\n", "not an integer", "line 3"},
		{"year 1", Azure, azure + "0001-11-16 18:17:03,1,5\n", "bad timestamp", "TIMESTAMP"},
		{"seconds of no clock", BurstGPT, samples[BurstGPT] + "1e300,s,1,m,1,1,2,x\n", "bad timestamp", "Timestamp: \"1e300\""},
		{"status", Measured, samples[Measured] + "r1,m,h,,v,,8,,,1.0,10,,,,,,,,fine\n", "unknown status", "status: \"fine\""},
		{"quantiles", ServeGenLengths, samples[ServeGenLengths] + "35,0,11,21,20,511,593,1244,2190,7605\n", "quantiles out of order", "in_p90"},
		{"clock", EngineLog, samples[EngineLog] + "r,p1,02-30 14:06:29,0.0,222.1,7,0,3,50.0\n", "bad timestamp", "time"},
		{"member twice", Mooncake, mooncake + `{"timestamp": 0, "timestamp": 1, "input_length": 512, "output_length": 9, "hash_ids": [7]}` + "\n", "duplicate field", "line 2"},
		{"other case", Mooncake, mooncake + `{"Timestamp": 0, "input_length": 512, "output_length": 9, "hash_ids": [7]}` + "\n", "missing field", "timestamp"},
		{"two values", Mooncake, mooncake + `{} {}` + "\n", "not JSON", "line 2"},
		{"fraction", Mooncake, mooncake + `{"timestamp": 0, "input_length": 1.5, "output_length": 9, "hash_ids": [7]}` + "\n", "not an integer", "input_length: \"1.5\""},
		{"null ids", Mooncake, mooncake + `{"timestamp": 0, "input_length": 1, "output_length": 9, "hash_ids": null}` + "\n", "wrong type", "hash_ids"},
		{"string id", Mooncake, mooncake + `{"timestamp": 0, "input_length": 1, "output_length": 9, "hash_ids": ["1"]}` + "\n", "wrong type", "hash_ids"},
		{"no label", EPP, samples[EPP] + `{"kv_cache_percentage": 0, "input_token_length": 48, "num_request_waiting": 0, "num_request_running": 0, "actual_ttft_ms": 0, "actual_tpot_ms": 0}` + "\n", "no label", "line 3"},
		{"percent", EPP, samples[EPP] + `{"kv_cache_percentage": 87, "input_token_length": 48, "num_request_waiting": 0, "num_request_running": 0, "actual_ttft_ms": 1, "actual_tpot_ms": 0}` + "\n", "out of range", "kv_cache_percentage: \"87\""},
		{"lists of messages", Agentic, samples[Agentic] + strings.Replace(strings.SplitAfter(samples[Agentic], "\n")[0], "[7035,341]", "[7035]", 1), "msg_chars has 1 entries, msg_hash_ids has 2", "line 3: msg_chars"},
		{"ttft after the end", AccessLog, samples[AccessLog] + `{"time": 1785585601, "status": 200, "ttft_ms": 9, "duration_ms": 3}` + "\n", "ttft longer than the request", "line 3: ttft_ms"},
		{"tokens in a record", InferencePerf, strings.Replace(samples[InferencePerf], `"input_tokens": 12`, `"input_tokens": -12`, 1), "negative", "record 1: info.request_metrics.text.input_tokens: \"-12\""},
		{"tokens missing", InferencePerf, strings.Replace(samples[InferencePerf], `"input_tokens"`, `"tokens"`, 1), "missing field", "record 1"},
		{"tokens backwards", InferencePerf, strings.Replace(samples[InferencePerf], "1000.75", "1000.25", 1), "token times out of order", "record 1"},
		{"end before start", GuideLLM, strings.Replace(samples[GuideLLM], `"request_end": 1003`, `"request_end": 100`, 1), "end before start", "record 1: info.timings.request_end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			rep, err := readReport(c.format, c.text, &n)
			if err != nil {
				t.Fatal(err)
			}
			if rep.Dropped[c.reason] != 1 || rep.Rows != rep.Kept+1 || n != rep.Kept {
				t.Fatalf("%s, %d handed out, want one dropped: %s", rep, n, c.reason)
			}
			if rep.First == nil || !strings.Contains(rep.First.Error(), c.first) || !strings.Contains(rep.First.Error(), c.reason) {
				t.Errorf("first fault %v, want %q", rep.First, c.first)
			}
		})
	}
}

// readReport reads text in whatever record type its format has.
func readReport(f Format, text string, n *int) (*Report, error) {
	if f == ServeGenLengths {
		return Read(f, "text", strings.NewReader(text), func(*Lengths) error { *n++; return nil })
	}
	if f == EngineLog {
		return Read(f, "text", strings.NewReader(text), func(*Sample) error { *n++; return nil })
	}
	return Read(f, "text", strings.NewReader(text), func(*Row) error { *n++; return nil })
}

func TestFatalFaults(t *testing.T) {
	header := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	good := header + "2023-11-16 18:17:03,4808,10\n"
	zip := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.WriteString(z, s); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	flip := func(s string) string { // the checksum of a gzip member
		b := []byte(s)
		b[len(b)-6] ^= 1
		return string(b)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "text: empty file"},
		{"blank lines", "\n \r\n\n", "text: empty file"},
		{"mark alone", "\xef\xbb\xbf", "text: empty file"},
		{"utf-16 little endian", "\xff\xfeT\x00", "not UTF-8"},
		{"utf-16 big endian", "\xfe\xff\x00T", "not UTF-8"},
		{"utf-16 without a mark", "T\x00I\x00M\x00E\x00", "not UTF-8: NUL at byte 1"},
		{"nul further on", good + strings.Repeat("2023-11-16 18:17:04,1,1\n", 5000) + "\x00\x00\x00", "line 5003: holds a NUL byte"},
		{"column twice", "TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n1,1,1,1\n", "column TIMESTAMP appears twice"},
		{"zstd", "\x28\xb5\x2f\xfdxxxx", "compressed with zstd; decompress it"},
		{"parquet", "PAR1xxxx", "compressed with parquet"},
		{"unknown columns", "a,b\n1,2\n", `format not recognised by its beginning "a,b"`},
		{"unknown members", `{"a": 1}`, "format not recognised"},
		{"no sound row", header + "x,1,1\ny,1,-1\n", `text: line 2: TIMESTAMP: "x": none of its 2 rows can be used: bad timestamp 2`},
		{"only failed", "Timestamp,Model,Request tokens,Response tokens\n1,m,5,0\n", "none of its 1 rows can be used: failed request (zero tokens) 1"},
		{"half a gzip header", "\x1f\x8b\x08", "unexpected EOF"},
		{"no gzip", "\x1f\x8bxxxxxxxxxxxxx", "gzip: invalid header"},
		{"wrong checksum", flip(zip(good)), "gzip: invalid checksum: the compressed stream is damaged after 1 rows"},
		{"rubbish behind gzip", zip(good) + "rubbish and more", "gzip: invalid header"},
		{"document cut", samples[InferencePerf][:len(samples[InferencePerf])-20], "unexpected EOF: the document is cut after 1 rows"},
		{"document broken", strings.Replace(samples[InferencePerf], "null", "nul", 1), "not JSON at byte"},
		{"two documents", samples[VLLMBench] + samples[VLLMBench], "more than one JSON document"},
		{"bare word", strings.Replace(samples[VLLMBench], "NaN,", "Nope,", 1), "not JSON at byte"},
		{"array wanted", strings.Replace(samples[VLLMBench], `[0.25, 0.5, 0.0]`, "7", 1), "ttfts is not an array"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("", "text", strings.NewReader(c.text), func(*Row) error { return nil })
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestOpenFaults(t *testing.T) {
	dir := t.TempDir()
	if _, err := Detect(dir); err == nil || !strings.Contains(err.Error(), "is a directory; name one file") {
		t.Errorf("directory: %v", err)
	}
	missing := filepath.Join(dir, "none.csv")
	rows, rep, err := Load[Row](missing)
	if !errors.Is(err, os.ErrNotExist) || rows != nil || rep == nil || err.Error() != missing+": no such file or directory" {
		t.Errorf("missing file: %v, %v", err, rep)
	}
	if _, err := LoadTrace(missing); err == nil {
		t.Error("trace of a missing file")
	}
	if _, err := Read("", "x", strings.NewReader(samples[Steps]), func(*Row) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "a file of scheduler steps (format vllm-steps) cannot be read as datasets.Row records") {
		t.Errorf("steps as rows: %v", err)
	}
	if _, err := Read("xyz", "x", strings.NewReader("1"), func(*Row) error { return nil }); err == nil || !strings.Contains(err.Error(), `format "xyz" unknown`) {
		t.Errorf("unknown format: %v", err)
	}
}

// An error of the caller ends the scan and comes back as it is.
func TestCallerStops(t *testing.T) {
	stop := errors.New("enough")
	for f := range formats {
		if _, ok := formats[f].scan.(func(*source, func(*Row) error) error); !ok {
			continue
		}
		n := 0
		_, err := Read(f, "x", strings.NewReader(samples[f]), func(*Row) error { n++; return stop })
		if !errors.Is(err, stop) || n != 1 {
			t.Errorf("%s: %d records, %v", f, n, err)
		}
	}
}

// A read error in mid-file is fatal and keeps its cause.
func TestReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	for f, text := range samples {
		half := io.MultiReader(strings.NewReader(text[:len(text)-1]), iotest.ErrReader(broken))
		_, err := Read("", "x", half, func(*Row) error { return nil })
		if _, ok := formats[f].scan.(func(*source, func(*Row) error) error); ok && !errors.Is(err, broken) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, err := Read("", "x", iotest.ErrReader(broken), func(*Row) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("at once: %v", err)
	}
}

// However the input is cut into reads, the result is the same.
func TestSmallReads(t *testing.T) {
	for f, text := range samples {
		if _, ok := formats[f].scan.(func(*source, func(*Row) error) error); !ok {
			continue
		}
		whole, _ := readAll[Row](t, f, text)
		var bytewise []Row
		if _, err := Read("", "sample", iotest.OneByteReader(strings.NewReader(text)), func(r *Row) error {
			bytewise = append(bytewise, *r)
			return nil
		}); err != nil || len(bytewise) != len(whole) {
			t.Errorf("%s: %d rows instead of %d, %v", f, len(bytewise), len(whole), err)
		}
	}
}

func TestLineLimit(t *testing.T) {
	text := samples[Mooncake] + `{"timestamp": 9, "input_length": 51200, "output_length": 9, "hash_ids": [` + strings.Repeat("1, ", 300) + "1]}\n"
	s, err := newSource("text", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	s.limit = 512
	if _, err = read(s, Mooncake, func(*Row) error { return nil }); err == nil || err.Error() != "text: line 3: longer than 512 bytes; is it a text file?" {
		t.Error(err)
	}
	s, err = newSource("text", strings.NewReader(strings.Replace(samples[VLLMBench], "NaN", strings.Repeat("x", 9<<10), 1)))
	if err != nil {
		t.Fatal(err)
	}
	s.limit = 1024
	if _, err = read(s, VLLMBench, func(*Row) error { return nil }); err == nil || !strings.Contains(err.Error(), "is longer than 1 KiB") {
		t.Error(err)
	}
}

// An endless line is refused at the limit instead of filling the memory.
func TestEndlessLine(t *testing.T) {
	for _, begin := range []string{samples[Azure], samples[Mooncake], `{"model_id": "m", "num_prompts": 1, "x": "`} {
		endless := io.MultiReader(strings.NewReader(begin), repeat('x'))
		s, err := newSource("x", endless)
		if err != nil {
			t.Fatal(err)
		}
		s.limit = 256 << 10
		if _, err := read(s, "", func(*Row) error { return nil }); err == nil || !strings.Contains(err.Error(), "longer than 256 KiB") {
			t.Errorf("%.20q…: %v", begin, err)
		}
	}
}

// repeat is a reader that yields one byte for ever.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func TestWindowsLineEndsAndBlankLines(t *testing.T) {
	rows, rep := readAll[Row](t, "", "\xef\xbb\xbf\r\nTIMESTAMP,ContextTokens,GeneratedTokens\r\n\r\n2023-11-16 18:17:03,4808,10\r\n\r\n2023-11-16 18:17:04,\"7\", 3\r\n\r\n")
	if len(rows) != 2 || rep.Rows != 2 || rows[1].Prompt != 7 || rows[1].Output != 3 || rows[1].Line != 6 {
		t.Errorf("%v, %v", rep, rows)
	}
}

func TestTraceOrder(t *testing.T) {
	rows := []Row{
		row(1, func(r *Row) { r.Run, r.Arrival = "b", 7 }), row(2, func(r *Row) { r.Run, r.Arrival = "a", 3 }),
		row(3, func(r *Row) { r.Run, r.Arrival = "b", 5 }), row(4, func(r *Row) { r.Run, r.Arrival = "a", math.NaN() }), row(5, func(r *Row) { r.Run, r.Arrival = "a", 1 }),
	}
	want := []struct {
		line int
		at   float64
	}{{3, 0}, {1, 2}, {2, 3}, {4, math.NaN()}, {5, 1}}
	for i, r := range byArrival(rows) {
		if r.Line != want[i].line || r.Arrival != want[i].at && Known(want[i].at) {
			t.Errorf("place %d: line %d at %v, want line %d at %v", i, r.Line, r.Arrival, want[i].line, want[i].at)
		}
	}
}

func TestMessages(t *testing.T) {
	r := Report{File: "f", Format: Azure, Rows: 6, Kept: 2, Dropped: map[string]int{"b": 1, "a": 1, "c": 2}, Reordered: 1}
	if got := r.String(); got != "f: azure, 6 rows, 2 kept; dropped: c 2, a 1, b 1; 1 out of order" {
		t.Error(got)
	}
	if got := shorten(strings.Repeat("ä", 40) + "\xff"); got != strings.Repeat("ä", 30)+"…" {
		t.Errorf("shortened to %q", got)
	}
	for o, want := range map[Outcome]string{Completed: "completed", Suspect: "suspect", Failed: "failed", 9: "unknown"} {
		if o.String() != want {
			t.Errorf("%d is %q", o, o)
		}
	}
}
