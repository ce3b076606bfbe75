package demo

import (
	"bytes"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"text/template"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

//go:embed envoy.yaml.tmpl
var envoyConfig string

// originalDst is the route on which Envoy dials the address in the header.
const originalDst = "/original-dst"

// stopLimit is how long Envoy may take to end by itself.
const stopLimit = 5 * time.Second

// hostPort is an address as a template wants it.
type hostPort struct{ Host, Port string }

func splitHostPort(addr string) hostPort {
	host, port, _ := net.SplitHostPort(addr) // both come from listeners or free
	return hostPort{host, port}
}

// writeEnvoyConfig renders the configuration into a file of dir.
func writeEnvoyConfig(dir, listen, picker string, endpoints []*fleet.Endpoint) (string, error) {
	t, err := template.New("envoy.yaml").Parse(envoyConfig)
	if err != nil {
		return "", err
	}
	data := struct {
		Listen, Picker hostPort
		Engines        []hostPort
	}{splitHostPort(listen), splitHostPort(picker), nil}
	for _, e := range endpoints {
		data.Engines = append(data.Engines, splitHostPort(e.Addr.String()))
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "envoy.yaml")
	return file, os.WriteFile(file, b.Bytes(), 0o600)
}

// Envoy is a running Envoy.
type Envoy struct {
	cmd    *exec.Cmd
	dir    string
	output tail
	done   chan struct{} // it has ended
}

// StartEnvoy starts Envoy between a listening address and the picker. It runs in a process group of
// its own, so that an interrupt from the terminal leaves it to Stop; on Linux it ends with this process,
// even if that is killed.
func StartEnvoy(path, listen, picker string, endpoints []*fleet.Endpoint) (*Envoy, error) {
	dir, err := os.MkdirTemp("", "presage-envoy-")
	if err != nil {
		return nil, err
	}
	file, err := writeEnvoyConfig(dir, listen, picker, endpoints)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	v := &Envoy{dir: dir, done: make(chan struct{})}
	v.cmd = exec.Command(path, "-c", file, "--disable-hot-restart", "--log-level", "warning", "--concurrency", "1") //nolint:noctx // stop ends it, gently first
	v.cmd.Stdout, v.cmd.Stderr = &v.output, &v.output
	v.cmd.SysProcAttr = ownGroup()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread that starts Envoy takes it along when it ends
		defer runtime.UnlockOSThread()
		err := v.cmd.Start()
		started <- err
		if err == nil {
			_ = v.cmd.Wait() // how it ended is in the state of the process
			close(v.done)
		}
	}()
	if err := <-started; err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("envoy %s: %w", path, err)
	}
	return v, nil
}

// failed is the error of an Envoy that has ended by itself.
func (v *Envoy) failed() error {
	select {
	case <-v.done:
		return fmt.Errorf("envoy: ended by itself (%s): %s", v.cmd.ProcessState, v.output.last())
	default:
		return nil
	}
}

// Stop ends Envoy's process group, by force if it must.
func (v *Envoy) Stop() {
	pid := v.cmd.Process.Pid
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	select {
	case <-v.done:
	case <-time.After(stopLimit):
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-v.done
	}
	_ = os.RemoveAll(v.dir)
}

// tail keeps the end of what a process writes.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - tailSize; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(p), nil
}

// last is the last line with something in it.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.buf), []byte("\n"))
	return string(lines[len(lines)-1])
}
