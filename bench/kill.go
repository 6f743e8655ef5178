package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

var errTooLong = errors.New("left out, since it has to be quick")

// This workload starts three members as processes, kills the leader, and measures the time until
// another member has been granted a free lock. It repeats this a few times, each time with new
// members.
func kill(ctx context.Context, r *Run) (Result, error) {
	times := 3
	if r.Quick {
		times = 1
	}
	var gaps []Result
	for i := range times {
		gap, err := killOnce(ctx, r.Peer, filepath.Join(r.Dir, fmt.Sprintf("kill%d", i)))
		if err != nil {
			return Result{}, err
		}
		gaps = append(gaps, Result{P50: gap, P99: gap})
	}
	result := median(gaps)
	for _, g := range gaps {
		result.P99 = max(result.P99, g.P99) // there are too few values for a percentile
	}
	result.Count = float64(times)
	return result, nil
}

func killOnce(ctx context.Context, p Peer, dir string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	addresses, err := freeAddresses(membersOf * addressesEach)
	if err != nil {
		return 0, err
	}
	processes := make([]*memberProcess, membersOf)
	defer func() {
		for _, m := range processes {
			m.kill()
		}
	}()
	err = together(membersOf, func(i int) (err error) {
		if processes[i], err = startMember(ctx, p.Name, memberDir(dir, i), addresses, i); err == nil {
			_, err = processes[i].ask("ready")
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	time.Sleep(time.Second) // until all members have finished starting
	var leader *memberProcess
	var others []*memberProcess
	for _, m := range processes {
		if _, err := m.ask("lock warm"); err != nil {
			return 0, err
		}
		if answer, err := m.ask("leads"); err != nil {
			return 0, err
		} else if answer == "true" {
			leader = m
		} else {
			others = append(others, m)
		}
	}
	if leader == nil {
		return 0, errors.New("no member leads")
	}
	began := time.Now()
	leader.kill()
	granted := make(chan error, len(others))
	for i, m := range others {
		go func() {
			_, err := m.ask(fmt.Sprintf("probe after-%d", i))
			granted <- err
		}()
	}
	select {
	case err := <-granted:
		return time.Since(began), err
	case <-ctx.Done():
		return 0, errors.New("no lock was granted within a minute")
	}
}

type memberProcess struct {
	cmd     *exec.Cmd
	in      io.Writer
	answers *bufio.Reader
}

func startMember(ctx context.Context, peer, dir string, addresses []string, i int) (*memberProcess, error) {
	return startSelf(ctx, "-member", peer, "-dir", dir, "-index", fmt.Sprint(i), "-addresses",
		strings.Join(addresses, ","))
}

func startSelf(ctx context.Context, args ...string) (*memberProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, err
	}
	return &memberProcess{cmd: cmd, in: in, answers: bufio.NewReader(out)}, nil
}

func (m *memberProcess) ask(question string) (string, error) {
	if _, err := fmt.Fprintln(m.in, question); err != nil {
		return "", err
	}
	answer, err := m.answers.ReadString('\n')
	answer = strings.TrimSpace(answer)
	if text, failed := strings.CutPrefix(answer, "error: "); failed {
		return "", errors.New(text)
	}
	return answer, err
}

func (m *memberProcess) kill() {
	if m == nil || m.cmd.ProcessState != nil {
		return
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait() // always fails, because the process was killed
}

// serveMember is the main function of a member process. It opens member i and executes the lines of
// in.
func serveMember(ctx context.Context, p Peer, dir string, addresses []string, i int, in io.Reader,
	out io.Writer) error {
	m, err := p.Member(ctx, dir, addresses, i)
	if err != nil {
		return err
	}
	err = answerLines(in, out, func(question string) (string, error) { return answerAsMember(ctx, m, question) })
	return errors.Join(err, m.Close())
}

func answerLines(in io.Reader, out io.Writer, answer func(question string) (string, error)) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text, err := answer(lines.Text())
		if err != nil {
			text = "error: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return lines.Err()
}

func answerAsMember(ctx context.Context, m Member, question string) (string, error) {
	verb, key, _ := strings.Cut(question, " ")
	switch verb {
	case "ready":
		return "ready", m.Ready(ctx)
	case "leads":
		return fmt.Sprint(m.Leads()), nil
	case "lock":
		by, err := m.Caller(ctx, false)
		if err != nil {
			return "", err
		}
		hold, err := by.Lock(ctx, key)
		if err != nil {
			return "", err
		}
		return "locked", hold.Unlock(ctx)
	case "group":
		return describeGroup(m)
	case "heap": // includes stacks, because a connection has goroutines
		bytes := heap()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return fmt.Sprint(bytes + int64(stats.StackInuse)), nil
	case "cpu":
		return fmt.Sprint(int64(used(syscall.RUSAGE_SELF))), nil
	case "probe":
		return "locked", probe(ctx, m, key)
	}
	return "", fmt.Errorf("what is %q?", question)
}

// probe starts a call for a new key every 50 ms until one of them is granted. A call that started
// when there was no leader may wait longer than a call that starts later.
func probe(ctx context.Context, m Member, key string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	granted := make(chan struct{}, 1)
	for i := 0; ; i++ {
		go func() {
			if _, err := answerAsMember(ctx, m, fmt.Sprintf("lock %s-%d", key, i)); err == nil {
				select {
				case granted <- struct{}{}:
				default:
				}
			}
		}()
		select {
		case <-granted:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
