// Command serve builds the page on which people try mortise in a browser, and serves it, or writes
// it into a directory. scripts/try runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/try/page"
)

func main() {
	out := flag.String("o", "", "write the files of the page into this directory, and end")
	address := flag.String("http", "127.0.0.1:0", "serve the page there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := write(ctx, *out)
	if *out == "" {
		err = serve(ctx, *address)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "try:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, dir string) error {
	if dir == "" {
		return nil
	}
	fmt.Fprintln(os.Stderr, "building the simulation for the browser: half a minute, the first time")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return page.Build(ctx, ".", dir)
}

func serve(ctx context.Context, address string) error {
	dir, err := os.MkdirTemp("", "mortise-try")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := write(ctx, dir); err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%v/ (Ctrl-C ends this)\n", l.Addr())
	server := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
