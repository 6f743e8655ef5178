// Package leftover finds processes that tests have started and not ended. Such a process holds the
// output of the test binary, so go test would wait for a minute and then fail with "Test I/O
// incomplete", which names no process.
//
// A test binary calls Run in TestMain. Guarantees: Run names the command line of each process that
// is left, ends it, and returns a code other than 0. Failure: it finds processes only on Linux, and
// none that has replaced its environment and lost its parent. Refused alternative: to be the
// subreaper of the processes; the tests would then see each ended one as a zombie.
package leftover

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// patience is the time for the end of processes that were killed as the tests ended.
const patience = 10 * time.Second

// Run runs the tests and returns the exit code.
func Run(m interface{ Run() int }) int {
	own := strconv.Itoa(os.Getpid())
	if err := os.Setenv(variable, own); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	left := find(own)
	for begun := time.Now(); len(left) > 0 && time.Since(begun) < patience; left = find(own) {
		time.Sleep(10*time.Millisecond + time.Since(begun)/8) // seldom at last, since find reads all of /proc
	}
	for _, p := range left {
		fmt.Fprintf(os.Stderr, "--- FAIL: the tests have ended, and process %d still runs: %s\n", p.id, p.command)
		if running, err := os.FindProcess(p.id); err == nil {
			_ = running.Kill()
		}
		code = max(code, 1)
	}
	return code
}
