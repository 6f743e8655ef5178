package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mortise-lock/mortise/internal/plain"
)

// A fleet that exceeds these limits can list only some of its instances, or use a service.
const (
	maxListBytes = 64 << 10
	maxListAddrs = 1024
	listSettles  = 200 * time.Millisecond // a changed file must stay the same for this long
)

// parseList parses a list with one host:port in each line. # begins a comment, and empty lines are
// skipped. Any other line makes the whole list invalid, since the file may be half written.
func parseList(text []byte) ([]string, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // some editors write this byte order mark
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

// checkMany limits the number of addresses. A lookup that used only some of them could miss a
// group.
func checkMany(n int) error {
	if n > maxListAddrs {
		return fmt.Errorf("%d addresses are more than %d", n, maxListAddrs)
	}
	return nil
}

type listFile struct {
	path string
	last []byte // the text in use
	read bool   // last is valid
}

// list reads the file. It uses a new text only when the text has stayed the same for listSettles,
// since the text may be half written. This applies to a renamed file too.
func (f *listFile) list(ctx context.Context) ([]string, error) {
	text, err := readSmall(f.path)
	for err == nil && (!f.read || !bytes.Equal(text, f.last)) {
		if err := pause(ctx, listSettles); err != nil {
			return nil, fmt.Errorf("%s changed in every attempt to read it: write a new file and rename it to this name", f.path)
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

// readSmall reads a file. It rejects a file that is not regular, since reading it may never end,
// and a file larger than maxListBytes.
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
	text, err := io.ReadAll(io.LimitReader(file, maxListBytes+1))
	if err == nil && len(text) > maxListBytes {
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
	case info.Size() > maxListBytes:
		return errTooLong(path)
	}
	return nil
}

func errTooLong(path string) error {
	return fmt.Errorf("%s has more than %d bytes", path, maxListBytes)
}

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

// clipped returns an error whose text is one printable line of limited length.
func clipped(err error) error {
	text := bytes.ToValidUTF8([]byte(err.Error()), []byte("?"))
	text = bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxErrorBytes {
		text = []byte(plain.Cut(string(text), maxErrorBytes) + "...")
	}
	return errors.New(string(text))
}

const maxErrorBytes = 300
