// Package trio starts a test binary as three processes, each with a node of one group. A test kills
// one of them, as a machine or an operator would. It is for the tests of the adapters, which are
// modules of their own.
//
// The test binary calls Main in TestMain. In a process that Start has started, Main starts a node
// and calls the given function, and no test runs. The process tells the test what happens with
// lines on its standard output.
//
// Guarantees: all processes have ended when the test ends. A killed process ends without any code
// of its own. Concurrency: a Fleet is for the goroutine of one test. Failure: the test fails if a
// process reports an error, or if it waits for longer than a minute. Limits: the nodes listen on
// loopback without encryption; a lock of a killed process stays taken for 2 s. Refused alternative:
// the nodes of package mortisetest, which live in one process and share its files and database
// connections.
package trio

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/leftover"
)

const (
	variable = "MORTISE_TRIO" // in a child: its number and the addresses of all
	failed   = "failed: "     // the beginning of a line that reports an error
	size     = 3
	ttl      = 2 * time.Second
)

// Main runs the tests, or calls work in a process that Start has started. It ends the process.
//
//	func TestMain(m *testing.M) { trio.Main(m, migrate) }
func Main(m interface{ Run() int }, work func(ctx context.Context, node *mortise.Node) error) {
	config := os.Getenv(variable)
	if config == "" {
		os.Exit(leftover.Run(m))
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the test has ended
		os.Exit(1)
	}()
	err := child(config, work)
	fmt.Println(failed + strings.ReplaceAll(err.Error(), "\n", "; "))
	os.Exit(1)
}

// child returns only if something has failed.
func child(config string, work func(context.Context, *mortise.Node) error) error {
	fields := strings.Fields(config)
	number, err := strconv.Atoi(fields[0])
	if err != nil {
		return err
	}
	addresses, ctx := fields[1:], context.Background()
	node, err := mortise.Start(ctx, mortise.Config{
		Name: fmt.Sprintf("node-%d", number), Bind: addresses[number], Join: addresses, Replicas: size,
		SessionTTL: ttl, Grace: -1, Insecure: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", number),
	})
	if err != nil {
		return err
	}
	if err := node.Ready(ctx); err != nil {
		return err
	}
	if err := work(ctx, node); err != nil {
		return err
	}
	// The others still need the votes of this process.
	select {}
}
