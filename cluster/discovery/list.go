package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Bounds of a list of addresses. A fleet of more instances names some of them, or a service.
const (
	listBytesMax = 64 << 10
	listAddrsMax = 1024
	listSettles  = 200 * time.Millisecond // how long a changed file must stay as it is before it counts
)

// parseList reads a list of addresses: one host:port a line, # begins a comment, empty lines are
// skipped. A list with a line that is none of that is refused as a whole: it may be half of what
// its writer meant.
func parseList(text []byte) ([]string, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // some editors begin a file with it
	var addrs []string
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line, _, _ = bytes.Cut(line, []byte("#"))
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if err := checkListed(string(line)); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, clipped(err))
		}
		addrs = append(addrs, string(line))
	}
	return addrs, checkMany(len(addrs))
}

// checkList is parseList for addresses that a function has returned. The slice is copied.
func checkList(list []string) ([]string, error) {
	if err := checkMany(len(list)); err != nil {
		return nil, err
	}
	for i, addr := range list {
		if err := checkListed(addr); err != nil {
			return nil, fmt.Errorf("address %d: %w", i+1, clipped(err))
		}
	}
	return append([]string(nil), list...), nil
}

// checkMany refuses more addresses than are ever asked. To take some of them could be to leave
// out an instance that belongs to a group.
func checkMany(n int) error {
	if n > listAddrsMax {
		return fmt.Errorf("%d addresses are more than %d", n, listAddrsMax)
	}
	return nil
}

// listFile is a file with a list. One goroutine at a time uses it.
type listFile struct {
	path string
	last []byte // as it counts now
	read bool   // last is something
}

// list reads the file anew. A text that differs from the last one counts only when it stays the
// same for a moment, since it may be half written. A file that is replaced
// by a renamed one waits no longer than that either.
func (f *listFile) list(ctx context.Context) ([]string, error) {
	text, err := readSmall(f.path)
	for err == nil && (!f.read || !bytes.Equal(text, f.last)) {
		if err := pause(ctx, listSettles); err != nil {
			return nil, fmt.Errorf("%s is being written again and again", f.path)
		}
		var again []byte
		if again, err = readSmall(f.path); err == nil && bytes.Equal(again, text) {
			f.last, f.read = text, true
		}
		text = again
	}
	if err != nil {
		return nil, err
	}
	addrs, err := parseList(text)
	if err != nil {
		return nil, fmt.Errorf("%s, %w", f.path, err)
	}
	return addrs, nil
}

// readSmall reads a file that is regular, since reading another may never end, and that has no more
// bytes than a list may.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, listBytesMax+1))
	if err == nil && len(text) > listBytesMax {
		err = errTooLong(path)
	}
	return text, err
}

func checkRegular(path string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Size() > listBytesMax:
		return errTooLong(path)
	}
	return nil
}

func errTooLong(path string) error {
	return fmt.Errorf("%s has more than %d bytes", path, listBytesMax)
}

// pause waits, or returns why it did not.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clipped makes an error one line that people can read, whatever it quotes.
func clipped(err error) error {
	text := bytes.ToValidUTF8([]byte(err.Error()), []byte("?"))
	text = bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > errorBytesMax {
		text = append(bytes.ToValidUTF8(text[:errorBytesMax], nil), "..."...)
	}
	return errors.New(string(text))
}

// errorBytesMax is how much of an error goes into Status and the log.
const errorBytesMax = 300
