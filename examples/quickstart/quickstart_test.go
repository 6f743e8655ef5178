package main

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/leftover"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		main()
		return
	}
	flag.Parse()
	os.Exit(leftover.Run(m))
}

func TestTheShowEndsAsPromised(t *testing.T) { testShow(t, options{}) }

func TestTheDurableShowEndsAsPromised(t *testing.T) {
	testShow(t, options{dir: t.TempDir(),
		secret: "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"})
}

func testShow(t *testing.T, o options) {
	t.Parallel()
	out, err := os.CreateTemp(t.TempDir(), "show")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	err = runShow(out, 9*time.Second, o)
	text, _ := os.ReadFile(out.Name())
	t.Logf("%s", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"killed ", "from the kill of ", "tokens rising: true", "all as promised"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the show does not say %q", want)
		}
	}
}
