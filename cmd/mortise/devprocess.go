package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/mortise-lock/mortise"
)

// devPart is one instance as its parent sees it. Only the goroutine of the show uses it.
type devPart struct {
	devInstance
	process     *devProcess // nil while it does not run
	starts      int         // of processes
	id          string      // of the instance, as its last process has reported; empty before that
	told        bool        // that it can get locks is printed
	cut, paused bool
	holds       mortise.Token // of devKey, as it has reported; zero means none
}

func (p *devPart) running() bool { return p.process != nil }

// acts reports whether the instance runs and reaches others.
func (p *devPart) acts() bool { return p.running() && !p.cut && !p.paused }

func (p *devPart) pid() int { return p.process.cmd.Process.Pid }

// kill ends the process, and waits for its end.
func (p *devPart) kill() {
	p.process.kill()
	p.process, p.holds = nil, 0
}

// setCut cuts the instance off, or heals the cut.
func (p *devPart) setCut(cut bool) {
	p.cut, p.told = cut, p.told && cut
	order := orderHeal
	if cut {
		order = orderCut
	}
	_ = p.process.order(order) // fails if the process has ended, which is reported
}

// setPaused pauses the instance, or lets it go on.
func (p *devPart) setPaused(paused bool) error {
	p.paused, p.told = paused, p.told && paused
	if paused {
		return pause(p.process.cmd.Process)
	}
	return goOn(p.process.cmd.Process)
}

// keep keeps what a report says about the instance.
func (p *devPart) keep(r devReport) {
	switch r.Kind {
	case devStarted:
		p.id = r.Text
	case devReady:
		p.told = true
	case devGranted:
		p.holds = r.Token
	case devDone, devLost:
		p.holds = 0
	}
}

// devProcess is a process of an instance.
type devProcess struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	ended  chan struct{} // closed when the process has ended and was waited for
}

// devNews is a report of an instance, or the end of its process.
type devNews struct {
	part    *devPart
	process *devProcess
	report  devReport
	ended   bool
	log     string // the last lines of its log, if it has ended
}

// start starts the process of the instance. Its reports go to news.
func (p *devPart) start(news func(devNews)) error {
	self, err := ownProgram()
	if err != nil {
		return err
	}
	first, err := json.Marshal(p.devInstance)
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Args, cmd.Env = []string{devName}, os.Environ()
	cmd.SysProcAttr = apartFromUs()
	log := &lastLines{}
	cmd.Stderr = log
	orders, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	reports, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	process := &devProcess{cmd: cmd, orders: orders, ended: make(chan struct{})}
	p.process, p.id, p.told, p.cut, p.paused, p.holds = process, "", false, false, false, 0
	p.starts++
	go func() {
		defer close(process.ended)
		for lines := bufio.NewScanner(reports); lines.Scan(); {
			var report devReport
			if json.Unmarshal(lines.Bytes(), &report) == nil { // the last line of a killed process may be incomplete
				news(devNews{part: p, process: process, report: report})
			}
		}
		_ = cmd.Wait() // how a killed process has ended is known
		news(devNews{part: p, process: process, ended: true, log: log.text()})
	}()
	return process.order(string(first))
}

// order sends a line to the process. A paused process reads it when it goes on.
func (p *devProcess) order(line string) error {
	_, err := io.WriteString(p.orders, line+"\n")
	return err
}

// kill kills the process and waits for its end. If it is paused, it ends too.
func (p *devProcess) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.ended
	_ = p.orders.Close()
}

const maxLastBytes = 2 << 10

// lastLines keeps the end of what is written to it. It is safe for concurrent use.
type lastLines struct {
	mu  sync.Mutex // guards all
	all []byte
}

func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, b...)
	l.all = l.all[max(0, len(l.all)-maxLastBytes):]
	return len(b), nil
}

func (l *lastLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.all))
}
