package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/outside"
)

// This file is the process of one instance of dev. Its parent writes to its standard input: one
// line with a devInstance, and then orders, one a line. The process writes reports to its standard
// output, one a line, and its log to standard error. It ends when its standard input ends.

// runDevInstance runs one instance and returns the exit code of its process.
func runDevInstance(in io.Reader, out, errs io.Writer) int {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which ends this process
	to := &reporter{out: json.NewEncoder(out)}
	failed := func(err error) int {
		to.say(devReport{Kind: devFailed, Text: sentence(err.Error(), toOperators)})
		return exitFailed
	}
	lines := bufio.NewScanner(in)
	var instance devInstance
	if !lines.Scan() {
		return exitFailed
	}
	if err := json.Unmarshal(lines.Bytes(), &instance); err != nil {
		return failed(err)
	}
	network := newCutNetwork()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	logger := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	hooks := &mortise.Hooks{Node: func(e mortise.NodeEvent) {
		if e.State == mortise.NodeAvailable {
			to.say(devReport{Kind: devReady})
		}
	}}
	node, err := mortise.Start(outside.In(ctx, outside.World{Listen: network.listen, Dial: network.dial}),
		instance.config(hooks, logger))
	if err != nil {
		return failed(err)
	}
	to.say(devReport{Kind: devStarted, Text: node.Status().Instance})
	ended, wrote := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(ended)
		for lines.Scan() {
			switch order := lines.Text(); order {
			case orderWrote:
				wrote <- struct{}{} // one write is answered before the next
			default:
				network.set(order == orderCut)
			}
		}
	}()
	if instance.Work {
		go devWork(ctx, node, to, wrote)
	}
	look := time.NewTicker(failedLook)
	defer look.Stop()
	for {
		select {
		case <-ended: // nothing of the group is needed any more, so there is nothing to hand over
			return exitOK
		case <-look.C:
			if err := node.Err(); err != nil {
				return failed(err)
			}
		}
	}
}
