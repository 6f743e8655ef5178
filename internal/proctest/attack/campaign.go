//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
)

const (
	lookEvery   = 5 * time.Second
	sampleEvery = 200 * time.Millisecond
	startWithin = time.Minute
)

type siege struct {
	flags
	dir     string
	secret  string
	victims []*victim
	first   []picture // state of each instance at the beginning

	mu     sync.Mutex // guards the fields below
	faults []string
	terms  map[uint64]bool
	tried  map[string]tally
}

type plan struct {
	Secret string
	Addrs  []string
}

func (s *siege) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := fmt.Sprintf(format, args...); len(s.faults) < 20 {
		s.faults = append(s.faults, text)
		fmt.Println("FAULT:", text)
	}
}

func campaign(ctx context.Context, f flags) (err error) {
	s := &siege{flags: f, dir: f.keep, secret: credentials.GenerateSecret(), terms: map[uint64]bool{}}
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
	quietFrom := time.Now()
	wait(ctx, min(max(f.length/10, 5*time.Second), time.Minute))
	attackFrom := time.Now()
	watched, stopWatching := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(watched, lookEvery, s.lookAround) })
	watching.Go(func() { s.watch(watched, sampleEvery, s.sampleAll) })
	err = s.attackFor(ctx, f.length)
	attackTo := time.Now()
	wait(ctx, 2*time.Second) // for the effects of the attacks to become visible
	stopWatching()
	watching.Wait()
	s.lookAround()
	s.sampleAll()
	err = errors.Join(err, s.endVictims())
	if err != nil {
		return err
	}
	return s.report(quietFrom, attackFrom, attackTo)
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
		s.terms[p.term] = true
	}
	return nil
}

func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // closed after all addresses are chosen, so that no two are equal
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func (s *siege) endVictims() error {
	errs := make([]error, len(s.victims))
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
			s.terms[p.term] = true
			s.mu.Unlock()
		}
	}
}

func (s *siege) sampleAll() {
	for _, v := range s.victims {
		v.sample()
	}
}

func (s *siege) attackFor(ctx context.Context, length time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var addrs []string
	for _, v := range s.victims {
		addrs = append(addrs, v.addr)
	}
	told, err := json.Marshal(plan{s.secret, addrs})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, length+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-attacker", "-t", length.String(), "-only", s.only)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(told)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
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
		var all map[string]tally
		if json.Unmarshal(lines.Bytes(), &all) == nil {
			s.mu.Lock()
			s.tried = all
			s.mu.Unlock()
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
