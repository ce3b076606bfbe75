package request

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"testing"
)

const audioForm = "--XYZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\x00\xff--XYZ-inside\r\n" +
	"--XYZ\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\ndemo-asr\r\n" +
	"--XYZ\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n--XYZ--\r\n"

// postForm parses a form under a content type.
func postForm(t *testing.T, c Config, contentType, body string) (*Request, error) {
	t.Helper()
	var h Head
	h.Set(":method", []byte("POST"))
	h.Set(":path", []byte("/v1/audio/transcriptions"))
	h.Set("content-type", []byte(contentType))
	var r Request
	err := parser(t, c).Parse(&r, &h, []byte(body))
	return &r, err
}

// TestB07Audio: of a multipart form, model and stream are read; there is no prefix.
func TestB07Audio(t *testing.T) {
	for _, contentType := range []string{`multipart/form-data; boundary=XYZ`, `Multipart/Form-Data; charset=utf-8; boundary="XYZ"`} {
		r, err := postForm(t, Config{}, contentType, audioForm)
		if err != nil || r.API != Audio || r.Model != "demo-asr" || !r.Stream || len(r.Blocks) != 0 || r.PromptTokens != 0 || r.Choices != 1 {
			t.Errorf("%s: %+v, %v", contentType, r, err)
		}
		if got := spliced(r, audioForm); got != audioForm {
			t.Error("the bytes changed")
		}
	}
	r, err := postForm(t, Config{Rewrite: map[string]string{"demo-asr": "whisper"}}, "multipart/form-data; boundary=XYZ", audioForm)
	if want := strings.Replace(audioForm, "demo-asr", "whisper", 1); err != nil || spliced(r, audioForm) != want || r.Target() != "whisper" {
		t.Errorf("rewritten: %v, %q", err, spliced(r, audioForm))
	}
	r.AddAnswer([]byte(long("text", 600)))
	if len(r.Chain()) != 0 {
		t.Error("an audio request has a chain")
	}
}

// TestB07BrokenForms: what is broken is routed as it is; what would mislead is refused.
func TestB07BrokenForms(t *testing.T) {
	part := func(name, value string) string {
		return "--XYZ\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	for name, body := range map[string]string{
		"never closed":     strings.TrimSuffix(audioForm, "--XYZ--\r\n"),
		"other boundary":   strings.ReplaceAll(audioForm, "XYZ", "ABC"),
		"empty":            "",
		"JSON":             `{"model":"m"}`,
		"cut in a header":  audioForm[:40],
		"cut in a value":   audioForm[:120],
		"only a boundary":  "--XYZ",
		"no header's end":  "--XYZ\r\nContent-Disposition: form-data; name=\"model\"\r\nm\r\n--XYZ--\r\n",
		"bare line breaks": strings.ReplaceAll(audioForm, "\r\n", "\n"),
		"too many parts":   strings.Repeat(part("x", "y"), 100) + "--XYZ--\r\n",
	} {
		r, err := postForm(t, Config{}, "multipart/form-data; boundary=XYZ", body)
		if err != nil || r.API != Opaque || r.Model != "" || r.Rewrite != "" {
			t.Errorf("%s: %v %q, %v", name, r.API, r.Model, err)
		}
	}
	for _, contentType := range []string{"multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"XYZ", "multipart/mixed; boundary=XYZ", "multipart/form-data; boundary=" + strings.Repeat("X", 80)} {
		if r, err := postForm(t, Config{}, contentType, audioForm); err != nil || r.API != Opaque {
			t.Errorf("%s: %v, %v", contentType, r.API, err)
		}
	}
	for name, c := range map[string]struct{ body, model string }{
		"preamble":       {"hello\r\n" + audioForm, "demo-asr"},
		"no model":       {part("language", "en") + "--XYZ--\r\n", ""},
		"empty model":    {part("model", "") + "--XYZ--\r\n", ""},
		"padded":         {strings.ReplaceAll(audioForm, "--XYZ\r\n", "--XYZ \t\r\n"), "demo-asr"},
		"other case":     {strings.ReplaceAll(audioForm, "Content-Disposition", "content-DISPOSITION"), "demo-asr"},
		"nameless part":  {"--XYZ\r\n\r\nx\r\n" + audioForm, "demo-asr"},
		"bad name":       {"--XYZ\r\nContent-Disposition: form-data; name=\"mo\r\n\r\nx\r\n" + audioForm, "demo-asr"},
		"long name":      {part(strings.Repeat("n", 5000), "x") + audioForm, "demo-asr"},
		"boundary alike": {part("x", "a\r\n--XYZ-not\r\n--XYZnor\r\n") + audioForm, "demo-asr"},
	} {
		if r, err := postForm(t, Config{}, "multipart/form-data; boundary=XYZ", c.body); err != nil || r.API != Audio || r.Model != c.model {
			t.Errorf("%s: %v %q, %v", name, r.API, r.Model, err)
		}
	}
	for name, body := range map[string]string{
		"two models": part("model", "a") + audioForm, "control characters": part("model", "a\nb") + "--XYZ--\r\n", "no UTF-8": part("model", "\xff") + "--XYZ--\r\n",
	} {
		_, err := postForm(t, Config{}, "multipart/form-data; boundary=XYZ", body)
		var e *Error
		if !errors.As(err, &e) || e.Status != 400 || e.Param != "model" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stdForm reads model and stream with package mime/multipart. ok is false where it finds the form
// broken, or the answer is not its to give.
func stdForm(boundary string, body []byte) (model, stream string, ok bool) {
	m := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxParts {
		p, err := m.NextRawPart()
		if errors.Is(err, io.EOF) {
			return model, stream, true
		}
		if err != nil {
			return "", "", false
		}
		v, err := io.ReadAll(p)
		if err != nil {
			return "", "", false
		}
		switch p.FormName() {
		case "model":
			model = string(v)
		case "stream":
			stream = string(v)
		}
	}
	return "", "", false
}

// FuzzForm: whatever package mime/multipart reads out of a form, so do we, and nothing panics.
func FuzzForm(f *testing.F) {
	f.Add([]byte(audioForm), "XYZ")
	f.Add([]byte("--b\r\n\r\n\r\n--b--"), "b")
	f.Add([]byte("x\r\n--b \r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--b\r\n\r\n\r\n--b--"), "b")
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		if len(boundary) == 0 || len(boundary) > 70 || strings.ContainsAny(boundary, "\r\n \t\"\\") || strings.HasSuffix(boundary, "-") {
			return
		}
		h := head("/v1/audio/transcriptions", "content-type", `multipart/form-data; boundary="`+boundary+`"`)
		var r Request
		err := parser(t, Config{}).Parse(&r, h, body)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
		if err != nil || r.API != Audio {
			return
		}
		if bytes.Contains(body, []byte("\n--"+boundary+"\n")) || bytes.HasPrefix(body, []byte("--"+boundary+"\n")) {
			return // package multipart also takes bare line breaks
		}
		if model, stream, ok := stdForm(boundary, body); ok && (model != r.Model || (stream == "true" || stream == "True" || stream == "1") != r.Stream) {
			t.Errorf("model %q, stream %v, want %q, %q", r.Model, r.Stream, model, stream)
		}
	})
}
