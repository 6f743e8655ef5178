package discovery

import (
	"context"
	"slices"
)

// Lookup returns the addresses to which an entry of Join leads now. Each is host:port, and the host
// is an IP address. Lookup is for a program that is not an instance. A host that does not exist has
// no addresses and causes no error. If some hosts cannot be looked up, Lookup returns the addresses
// of the others. It reads a file immediately, even if the file may be half written. The lookup ends
// with ctx.
func Lookup(ctx context.Context, entry string) ([]string, error) {
	if err := Check(entry); err != nil {
		return nil, err
	}
	cfg := Config{}.withDefaults()
	r := newResolving(cfg, entry)
	if _, path, _ := parseJoin(entry); r.kind == formFile { // a half-written list is good enough
		r.list = func(context.Context) ([]string, error) {
			text, err := readSmall(path)
			if err != nil {
				return nil, err
			}
			return parseList(text)
		}
	}
	got := cfg.look(ctx, r.list)
	if got.err != nil {
		return nil, got.err
	}
	addrs, failed := r.answer(got.lines)
	if len(addrs) == 0 && failed != "" {
		return nil, lookupError(failed)
	}
	return slices.Clip(addrs), nil
}

type lookupError string

func (e lookupError) Error() string { return string(e) }
