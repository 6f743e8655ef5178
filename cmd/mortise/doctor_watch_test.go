//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// doctor -watch prints each change of the verdict. After Ctrl-C it exits with the code of the last
// verdict.
func TestDoctorWatches(t *testing.T) {
	t.Parallel()
	f := startFleet(t, true, "a", "b", "c")
	f.doctorSays(exitOK, "well: ")
	cmd := f.command("doctor", "--watch", "-every", "100ms")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() }).Stop()
	lines := bufio.NewScanner(out)
	until := func(begin string) {
		t.Helper()
		for lines.Scan() {
			if t.Log(lines.Text()); strings.HasPrefix(lines.Text(), begin) {
				return
			}
		}
		t.Fatalf("it ended before %q: %v", begin, lines.Err())
	}
	until("well: ")
	f.agents[2].kill()
	until("trouble: ")
	_ = cmd.Process.Signal(syscall.SIGINT)
	for lines.Scan() { // reads the rest before Wait closes the pipe
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitNo {
		t.Errorf("code %d", code)
	}
	f.mortise("doctor", "--watch", "-every", "1ms").wants(t, exitUsage)
}

// A checkup that Ctrl-C interrupts is not printed. A checkup is also not printed if only the
// durations in the headline or the text below the headline have changed.
func TestAVerdictIsPrintedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		verdicts := []diagnosis{
			{Well: true, Problem: "a leads"},
			{Well: true, Problem: "a leads", Why: []string{"news"}},
			{Problem: "the quorum is lost for 900ms: 2 of 3 voters are missing"},
			{Problem: "the quorum is lost for 1m5.9s: 2 of 3 voters are missing"},
			{Problem: "the quorum is lost for 1m6s: 3 of 3 voters are missing"},
			{Well: true, Problem: "b leads"},
			{Problem: "no instance answers"},
		}
		looks := 0
		var out bytes.Buffer
		c := &call{out: &out, errs: &out}
		err := c.watchDoctor(ctx, time.Second, func(context.Context) (*checkup, error) {
			if looks++; looks == len(verdicts) {
				stop()
			}
			return &checkup{diagnosis: &verdicts[looks-1]}, nil
		})
		if err != nil || looks != len(verdicts) {
			t.Errorf("after %d looks: %v", looks, err)
		}
		var heads []string
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "well") || strings.HasPrefix(line, "trouble") {
				heads = append(heads, strings.TrimSpace(line))
			}
		}
		want := "well: a leads|trouble: the quorum is lost for 900ms: 2 of 3 voters are missing|" +
			"trouble: the quorum is lost for 1m6s: 3 of 3 voters are missing|well: b leads"
		if got := strings.Join(heads, "|"); got != want {
			t.Errorf("it printed\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAWatchThatEndsAtOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	c := &call{out: &bytes.Buffer{}}
	err := c.watchDoctor(ctx, time.Second, func(context.Context) (*checkup, error) { return nil, errors.New("cut short") })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
