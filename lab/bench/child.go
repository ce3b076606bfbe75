package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Settings is what the child's service is started with. It crosses the pipe as one line of JSON.
type Settings struct {
	Endpoints []Endpoint    `json:"endpoints"`
	Policy    string        `json:"policy"`
	Shadow    []string      `json:"shadow"`  // policies that decide beside, without effect
	Scrape    time.Duration `json:"scrape"`  // interval
	Answers   int           `json:"answers"` // endpoints named per answer
	Profile   string        `json:"profile"` // file for a CPU profile; empty: none
}

// Endpoint is one engine of numbers.
type Endpoint struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// Service is the running service in the child.
type Service interface {
	ExtProc() string     // where it listens
	Fleet() *fleet.Fleet // its ledger
	Stop() error         // ends it at once
}

// Start starts the service.
type Start func(Settings) (Service, error)

// Report is the child's account of itself.
type Report struct {
	ExtProc    string        `json:"extproc,omitempty"`
	CPU        time.Duration `json:"cpu"` // user and system, since the start
	Goroutines int           `json:"goroutines"`
	Inflight   int           `json:"inflight"` // requests in the ledger, endpoints that left included
	Resident   int64         `json:"resident"` // largest resident set so far, bytes
}

// Attend is the child: it reads its settings from the first line of in, starts the service, and answers
// every further line with a report, until in ends.
func Attend(in io.Reader, out io.Writer, start Start) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return errors.New("bench child: no settings; it is started by other commands")
	}
	var set Settings
	if err := json.Unmarshal(lines.Bytes(), &set); err != nil {
		return fmt.Errorf("bench child: cannot parse the settings: %w", err)
	}
	s, err := start(set)
	if err != nil {
		return err
	}
	stop, err := profile(set.Profile)
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	return errors.Join(answerAll(lines, out, s), s.Stop(), stop())
}

// answerAll answers every line, the one with the settings first.
func answerAll(lines *bufio.Scanner, out io.Writer, s Service) error {
	enc := json.NewEncoder(out)
	for {
		if err := enc.Encode(account(s)); err != nil {
			return err
		}
		if !lines.Scan() {
			return lines.Err()
		}
	}
}

// profile writes a CPU profile until the returned function is called; no file, no profile.
func profile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func account(s Service) Report {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // cannot fail for oneself
	var snap fleet.Snapshot
	s.Fleet().Snapshot(time.Now(), &snap)
	inflight := 0
	for _, st := range append(snap.States, s.Fleet().Leaving(nil)...) {
		inflight += int(st.Requests)
	}
	return Report{
		ExtProc: s.ExtProc(), CPU: time.Duration(use.Utime.Nano() + use.Stime.Nano()),
		Goroutines: runtime.NumGoroutine(), Inflight: inflight, Resident: use.Maxrss << 10, // in KiB, as Linux counts
	}
}

// Program is how the tool starts itself again as the child.
type Program struct {
	Path string
	Args []string
}

// child is the parent's view of it.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	first Report
}

func startChild(ctx context.Context, p Program, set Settings) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, p.Path, p.Args...)}
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is the parent's to handle
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", p.Path, err)
	}
	line, err := json.Marshal(set)
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	if err == nil {
		c.first, err = c.read()
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// report asks the child for its account.
func (c *child) report() (Report, error) {
	if _, err := c.in.Write([]byte{'\n'}); err != nil {
		return Report{}, fmt.Errorf("the service has ended: %w", err)
	}
	return c.read()
}

func (c *child) read() (Report, error) {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return Report{}, errors.New("the service has ended")
	}
	var r Report
	if err := json.Unmarshal(line, &r); err != nil {
		return Report{}, fmt.Errorf("cannot parse %q: %w", line, err)
	}
	return r, nil
}

// stop ends the child and waits for it.
func (c *child) stop() error {
	_ = c.in.Close()
	return c.cmd.Wait()
}
