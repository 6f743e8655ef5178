package mortise

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
)

// This file keeps secrets out of what is printed. A Config ends up in logs sooner or later, and a
// Node by way of a struct that holds one.

// redacted stands where a secret is.
const redacted = "[redacted]"

// withoutSecrets returns a copy in which every secret is replaced by with, and without TLS, which
// may hold a key.
func (c Config) withoutSecrets(with string) Config {
	if c.Secret != "" {
		c.Secret = with
	}
	if with == "" {
		c.OldSecrets = nil
	}
	c.OldSecrets = slices.Repeat([]string{with}, len(c.OldSecrets))
	if c.TLS != nil {
		c.TLS = &tls.Config{}
	}
	return c
}

// Format implements [fmt.Formatter]: for every verb it shows [redacted] in place of Secret, of each
// of OldSecrets, and nothing of TLS. The fmt package asks neither this method nor any other about
// an unexported field: in a struct of your own keep a Config in an exported field, or behind a
// pointer.
func (c Config) Format(f fmt.State, verb rune) {
	type config Config // without this method
	c = c.withoutSecrets(redacted)
	if verb == 's' || verb == 'q' { // their complaints about numbers and functions would be all that is seen
		text := fmt.Sprintf("%+v", config(c))
		fmt.Fprintf(f, fmt.FormatString(f, verb), text)
		return
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), config(c))
}

// LogValue implements [slog.LogValuer], as Format does it for fmt.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c)) }

// Format implements [fmt.Formatter]. A node shows its name and the ID of its present life;
// [Node.Status] has the rest.
func (n *Node) Format(f fmt.State, _ rune) {
	if n == nil {
		fmt.Fprint(f, "<nil>")
		return
	}
	fmt.Fprintf(f, "mortise.Node(%s %s)", n.config.Name, n.engine.ID())
}

// LogValue implements [slog.LogValuer], as Format does it for fmt.
func (n *Node) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(n)) }
