package report

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// browser is headless Chromium, or a skip.
func browser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: -short: starts a browser several times")
	}
	if p := os.Getenv("PRESAGE_CHROMIUM"); p != "" {
		return p
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	t.Skip("skipped: no chromium in PATH and PRESAGE_CHROMIUM is not set")
	return ""
}

// look has the browser load the address, and returns its output and its log.
func look(t *testing.T, address string, args ...string) (out, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-extensions", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(), "--enable-logging=stderr",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
	}, append(args, address)...)
	cmd := exec.CommandContext(ctx, browser(t), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// host serves one page and counts what else it is asked for.
func host(t *testing.T, page []byte) (address string, others *atomic.Int64) {
	t.Helper()
	others = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/report" {
			others.Add(1)
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/report", others
}

func complaints(log string) []string {
	var out []string
	for l := range strings.Lines(log) {
		if strings.Contains(l, "CONSOLE") {
			out = append(out, l)
		}
	}
	return out
}

// TestBrowserFindsNothingWrong: no complaint in the console, which is where refusals of the content
// security policy go, and no request beside that of the page.
func TestBrowserFindsNothingWrong(t *testing.T) {
	browser(t)
	for name, c := range map[string]*Comparison{"compare": sample(), "live": sampleLive(), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			page := written(t, c)
			address, others := host(t, page)
			dom, log := look(t, address, "--dump-dom", "--virtual-time-budget=2000")
			for _, l := range complaints(log) {
				t.Error(l)
			}
			if n := others.Load(); n > 0 {
				t.Errorf("%d requests beside the page", n)
			}
			if !strings.Contains(dom, "<h1>") || !strings.Contains(dom, `id="theme" type="button">`) {
				t.Error("the page did not come up, or its script did not run")
			}
			if name == "empty" {
				return
			}
			pdf := filepath.Join(t.TempDir(), "page.pdf")
			look(t, address, "--print-to-pdf="+pdf, "--no-pdf-header-footer")
			b, err := os.ReadFile(pdf)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(b, -1)); n < 1 || n > 3 {
				t.Errorf("prints to %d pages", n)
			}
			keep(t, pdf, name+".pdf")
			shots(t, address, name)
		})
	}
}

// TestBrowserTellsWhatIsWrong: the checks above do find a broken page.
func TestBrowserTellsWhatIsWrong(t *testing.T) {
	browser(t)
	address, others := host(t, []byte(`<!doctype html><link rel="icon" href="data:,"><p>x<script>console.error("wrong")</script><img src="/else.png">`))
	if _, log := look(t, address, "--dump-dom"); len(complaints(log)) == 0 {
		t.Errorf("no complaint in %s", log)
	}
	if others.Load() == 0 {
		t.Error("the request was not counted")
	}
}

// TestNothingOverflows at the widths of phones, tablets and screens: in frames, as windows have a least width.
func TestNothingOverflows(t *testing.T) {
	browser(t)
	pages := map[string][]byte{"/compare": written(t, sample()), "/live": written(t, sampleLive())}
	var frames strings.Builder
	for name := range pages {
		for _, w := range []string{"320", "390", "768", "1024", "1280", "1920"} {
			frames.WriteString(`<iframe width="` + w + `" height="600" src="` + name + `"></iframe>`)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if p, ok := pages[r.URL.Path]; ok {
			_, _ = w.Write(p)
			return
		}
		_, _ = w.Write([]byte(`<!doctype html><link rel="icon" href="data:,">` + frames.String() + `<script>onload = () => {
document.title = "over " + [...document.querySelectorAll("iframe")].map(f => { const d = f.contentDocument.documentElement; return f.src + "@" + f.width + "=" + (d.scrollWidth - d.clientWidth) }).join(" ") }</script>`))
	}))
	defer s.Close()
	dom, _ := look(t, s.URL, "--dump-dom")
	m := regexp.MustCompile(`<title>over (.*)</title>`).FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("no measure in %.300s", dom)
	}
	for _, f := range strings.Fields(m[1]) {
		if !strings.HasSuffix(f, "=0") {
			t.Errorf("%s pixels too wide", f)
		}
	}
	if n := len(strings.Fields(m[1])); n != 12 {
		t.Errorf("%d frames measured", n)
	}
}

// shots keeps pictures where PRESAGE_SHOTS names a folder.
func shots(t *testing.T, address, name string) {
	t.Helper()
	dir := os.Getenv("PRESAGE_SHOTS")
	if dir == "" {
		return
	}
	for what, args := range map[string][]string{
		"light": {"--window-size=1280,2600"}, "dark": {"--window-size=1280,2600", "--blink-settings=preferredColorScheme=0"}, "phone": {"--window-size=390,5200"},
	} {
		look(t, address, append(args, "--screenshot="+filepath.Join(dir, name+"-"+what+".png"))...)
	}
}

func keep(t *testing.T, file, name string) {
	t.Helper()
	if dir := os.Getenv("PRESAGE_SHOTS"); dir != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func written(t *testing.T, c *Comparison) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
