//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/attackers"
	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/plan"
)

const (
	lookEvery   = 5 * time.Second
	sampleEvery = 200 * time.Millisecond
	holdWithin  = 3 * time.Second
	settle      = 3 * time.Second // before the quiet phase
)

type flags struct {
	instance string
	agent    string
	keep     string
	length   time.Duration
	quiet    time.Duration
	only     string
	own      bool
	spin     bool
	attacker bool
	limits
}

type siege struct {
	flags
	dir     string
	secret  string
	victims []*victim
	agent   *agent
	first   []picture // state of each instance at the beginning
	derived map[string]string
	cores   cores
	lawful  lawful

	mu     sync.Mutex // guards the fields below
	faults []string
	term   uint64 // the highest term that an instance has reported
	tried  map[string]attackers.Tally
}

func (s *siege) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := fmt.Sprintf(format, args...); len(s.faults) < 20 && !slices.Contains(s.faults, text) {
		s.faults = append(s.faults, text)
		fmt.Println("FAULT:", text)
	}
}

func campaign(ctx context.Context, f flags) (err error) {
	s := &siege{flags: f, dir: f.keep, secret: credentials.GenerateSecret()}
	if s.derived, err = plan.Secrets(s.secret); err != nil {
		return err
	}
	if s.cores, err = divide(); err != nil {
		return err
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "attack"); err != nil {
			return err
		}
		defer os.RemoveAll(s.dir)
	} else if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.startVictims(ctx); err != nil {
		return errors.Join(err, s.endVictims())
	}
	working, stopWork := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { err = s.lawful.run(working, s.derived, s.addrs(), s.agent.url) })
	all.Go(func() { s.watch(working, lookEvery, s.lookAround) })
	all.Go(func() { s.watch(working, lookEvery, s.checkHolds) })
	all.Go(func() { s.watch(working, sampleEvery, s.sampleAll) })
	m, failed := s.phases(ctx)
	wait(ctx, 2*time.Second) // for the effects of the attacks to become visible
	stopWork()
	all.Wait()
	s.lookAround()
	s.sampleAll()
	if err = errors.Join(err, failed, s.endVictims()); err != nil {
		return err
	}
	return s.report(m)
}

// moments are the ends of the phases.
type moments struct{ free, freed, began, attacked, ended moment }

func (s *siege) phases(ctx context.Context) (m moments, err error) {
	wait(ctx, settle)
	m.free = s.now()
	wait(ctx, s.quiet)
	m.freed = s.now()
	calm := func() error {
		wait(ctx, settle)
		m.began = s.now()
		wait(ctx, s.quiet)
		m.attacked = s.now()
		return nil
	}
	if s.own {
		err = errors.Join(s.confine(), calm())
	} else {
		err = s.besideNeutral(ctx, calm)
	}
	if err != nil {
		return m, err
	}
	err = s.attackFor(ctx, s.length)
	m.ended = s.now()
	return m, err
}

// confine gives the last processor to the attackers, and the others to all other processes.
func (s *siege) confine() error {
	pids := []int{os.Getpid(), s.agent.cmd.Process.Pid}
	for _, v := range s.victims {
		pids = append(pids, v.cmd.Process.Pid)
	}
	return confine(&s.cores.others, pids...)
}

// besideNeutral calls do while a neutral process runs.
func (s *siege) besideNeutral(ctx context.Context, do func() error) error {
	cmd, err := s.child(ctx, "-spin")
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = do()
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // its error is that it was killed
	return err
}

// child returns a process of this program that has one processor.
func (s *siege) child(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	return cmd, nil
}

func (s *siege) now() moment {
	s.lookAround()
	l := &s.lawful
	s.mu.Lock()
	defer s.mu.Unlock()
	return moment{at: time.Now(), term: s.term,
		done:  map[string]int64{"a guest": l.guest.Load(), "a program of the agent": l.program.Load()},
		fresh: newcomers{served: int(l.fresh.Load()), failed: int(l.failed.Load())}}
}

func (s *siege) addrs() (addrs []string) {
	for _, v := range s.victims {
		addrs = append(addrs, v.addr)
	}
	return addrs
}

func (s *siege) startVictims(ctx context.Context) error {
	addrs, err := freeAddrs(3)
	if err != nil {
		return err
	}
	for i, addr := range addrs {
		v := &victim{name: string(rune('a' + i)), addr: addr, dir: s.dir}
		if err := v.start(s.instance, s.secret, addrs, 1+int(s.length/(5*time.Minute))); err != nil {
			return err
		}
		s.victims = append(s.victims, v)
	}
	late := time.After(startWithin)
	for _, v := range s.victims {
		select {
		case <-v.ready:
		case <-v.ended:
			return fmt.Errorf("%s has ended: see its log", v.name)
		case <-late:
			return fmt.Errorf("%s is not ready after %v", v.name, startWithin)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	wait(ctx, 2*time.Second)
	for _, v := range s.victims {
		p, err := v.look()
		if err != nil {
			return err
		}
		s.first = append(s.first, p)
		s.term = max(s.term, p.term)
	}
	for i := range plan.Held() {
		if err := s.hold(i); err != nil {
			return err
		}
	}
	s.agent, err = startAgent(ctx, s.flags.agent, s.dir, s.secret, addrs)
	return err
}

// hold makes the first instance lock one of the locks that it holds during the campaign.
func (s *siege) hold(i int) error {
	h := plan.Held()[i]
	e, err := s.victims[0].ask(request{Op: "lock", Key: h.Key, Keys: h.Keys, Path: h.Path, As: heldAs(i),
		Within: holdWithin})
	if err == nil && e.Err != "" {
		err = errors.New(e.Err)
	}
	if err != nil {
		return fmt.Errorf("the instance does not lock %+v: %w", h, err)
	}
	return nil
}

func heldAs(i int) string { return fmt.Sprintf("held %d", i) }

// checkHolds reports the locks that the first instance has lost, and locks them anew.
func (s *siege) checkHolds() {
	for i, h := range plan.Held() {
		e, err := s.victims[0].ask(request{Op: "check", As: heldAs(i), Within: holdWithin})
		if err != nil || e.Err == "" {
			continue
		}
		fmt.Printf("LOST: the hold %+v: %s\n", h, e.Err)
		_ = s.hold(i) // if this fails, the next check reports the lock again
	}
}

func (s *siege) endVictims() error {
	errs := make([]error, len(s.victims)+1)
	if s.agent != nil {
		errs[len(s.victims)] = s.agent.end()
	}
	var all sync.WaitGroup
	for i, v := range s.victims {
		all.Go(func() { errs[i] = v.end() })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *siege) watch(ctx context.Context, every time.Duration, do func()) {
	for ctx.Err() == nil {
		do()
		wait(ctx, every)
	}
}

// lookAround compares the voters that each instance reports with the voters at the beginning.
func (s *siege) lookAround() {
	for i, v := range s.victims {
		select {
		case <-v.ended:
			s.fault("instance %s has ended: %v", v.name, v.cmd.ProcessState)
			continue
		default:
		}
		p, err := v.look()
		switch {
		case err != nil:
			s.fault("%v", err)
		case !p.votes:
			s.fault("instance %s no longer votes", v.name)
		case p.voters != s.first[i].voters:
			s.fault("instance %s knew the voters %s, and knows %s", v.name, s.first[i].voters, p.voters)
		default:
			s.mu.Lock()
			s.term = max(s.term, p.term)
			s.mu.Unlock()
		}
	}
}

func (s *siege) sampleAll() {
	for _, v := range s.victims {
		v.sample()
	}
	s.agent.sample()
}

func (s *siege) attackFor(ctx context.Context, length time.Duration) error {
	told, err := json.Marshal(plan.Plan{Secret: s.secret, Derived: s.derived, Addrs: s.addrs(), Agent: s.agent.url})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attackers.MostTimes*length+30*time.Second)
	defer cancel()
	cmd, err := s.child(ctx, "-attacker", "-t", length.String(), "-only", s.only)
	if err != nil {
		return err
	}
	cmd.Stdin = strings.NewReader(string(told))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	on := &s.cores.all
	if s.own {
		on = &s.cores.attackers
	}
	if err := startOn(on, cmd.Start); err != nil {
		return err
	}
	s.hear(out)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the attacker: %w", err)
	}
	return nil
}

func (s *siege) hear(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var all map[string]attackers.Tally
		if json.Unmarshal(lines.Bytes(), &all) == nil {
			s.mu.Lock()
			s.tried = all
			s.mu.Unlock()
		}
	}
}

// report judges the recorded histories and the measurements, and prints them. Its error names each
// limit that was exceeded.
func (s *siege) report(m moments) error {
	var files []string
	f := figures{
		resident: map[string]int{"the agent": s.agent.kib >> 10}, kinds: map[string]attackers.Tally{},
		newcomers: newcomers{served: m.ended.fresh.served - m.attacked.fresh.served,
			failed: m.ended.fresh.failed - m.attacked.fresh.failed},
	}
	for _, v := range s.victims {
		files = append(files, v.history())
		f.resident["instance "+v.name] = v.mib()
	}
	for _, kind := range attackers.Kinds(s.only) {
		f.kinds[kind] = s.tried[kind]
	}
	events, err := recorded(files)
	if err != nil {
		return err
	}
	if err := history.Judge(events, history.Options{Uncertainty: clocks, Settle: 45 * time.Second}); err != nil {
		s.fault("the history is not right: %v", err)
	}
	lost, why := s.lawful.losses()
	f.free = between(events, m.free, m.freed)
	f.quiet, f.attacked = between(events, m.began, m.attacked), between(events, m.attacked, m.ended)
	f.lost, f.newcomers.why = f.free.lost+f.quiet.lost+f.attacked.lost+len(lost), why
	fmt.Printf("attacked for %v, after %v of quiet; %d events recorded\n",
		f.attacked.length, f.quiet.length, len(events))
	f.print()
	for _, text := range lost {
		fmt.Println("lost:", text)
	}
	for _, text := range judge(f, s.limits) {
		s.fault("%s", text)
	}
	if len(s.faults) > 0 {
		return errors.New("the campaign has failed:\n  " + strings.Join(s.faults, "\n  "))
	}
	fmt.Println("passed: no lock granted twice or lost, no voter lost, no instance ended, every limit kept")
	return nil
}
