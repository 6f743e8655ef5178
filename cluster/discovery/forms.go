package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mortise-lock/mortise/internal/plain"
)

type form uint8

const (
	formHost    form = iota // host:port, also written dns:///host:port
	formService             // srv:///name: hosts and ports from SRV records
	formFile                // file:///path: a file with a list of host:port
	formFunc                // Config.Func: a list of host:port
)

const joinForms = "want host:port, dns:///name:port, srv:///name or file:///path"

// Check returns an error if an entry of Join is malformed. It makes no lookup.
func Check(entry string) error {
	_, _, err := parseJoin(entry)
	return err
}

// parseJoin splits an entry into its form and the value: host:port, the name of a service, or a
// path.
func parseJoin(entry string) (form, string, error) {
	scheme, rest, found := strings.Cut(entry, "://")
	if !found {
		if err := checkListed(entry); err != nil {
			return 0, "", fmt.Errorf("%w; %s", err, joinForms)
		}
		return formHost, entry, nil
	}
	name, three := strings.CutPrefix(rest, "/")
	switch {
	case scheme != "dns" && scheme != "srv" && scheme != "file":
		return 0, "", fmt.Errorf("%q begins with %q, which is not known here; %s", clip(entry), clip(scheme+"://"),
			joinForms)
	case !three:
		return 0, "", fmt.Errorf("%q has two slashes where three belong, %s; %s", clip(entry),
			clip(scheme+":///"+rest), joinForms)
	case scheme == "file":
		if name == "" || strings.ContainsRune(name, 0) || len(rest) > maxPathBytes {
			return 0, "", fmt.Errorf("%q names no file; %s", clip(entry), joinForms)
		}
		return formFile, localPath(rest), nil
	case scheme == "srv":
		if err := checkHost(name); err != nil || strings.Contains(name, ":") {
			return 0, "", fmt.Errorf("%q must be srv:/// and the name of SRV records, which give the ports; %s",
				clip(entry), joinForms)
		}
		return formService, name, nil
	}
	if err := checkListed(name); err != nil {
		return 0, "", fmt.Errorf("%q: %w; %s", clip(entry), err, joinForms)
	}
	return formHost, name, nil
}

// maxPathBytes is the longest path that systems accept.
const maxPathBytes = 4096

// localPath returns the path after file:// without decoding escapes. On systems with drive letters,
// /C:/x becomes C:/x.
func localPath(path string) string {
	if len(path) > 2 && path[0] == '/' && path[2] == ':' && filepath.VolumeName(path[1:]) != "" {
		path = path[1:]
	}
	return filepath.FromSlash(path)
}

func checkListed(addr string) error {
	if len(addr) > MaxAddrBytes {
		return fmt.Errorf("%q has %d bytes, more than %d", clip(addr), len(addr), MaxAddrBytes)
	}
	if err := CheckAddr(addr); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(addr)
	if err := checkHost(host); err != nil {
		return fmt.Errorf("%q: %w", addr, err)
	}
	return nil
}

// MaxAddrBytes is the maximum length of an address.
const MaxAddrBytes = 200

// CheckAddr returns an error if addr is not a valid host:port.
func CheckAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not host:port", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || len(addr) > MaxAddrBytes {
		return fmt.Errorf("%q is not host:port with a host and a port from 1 to 65535", addr)
	}
	return nil
}

// checkHost rejects a text that is neither an IP address nor a possible DNS name. The resolver
// would report this text as nonexistent, and the lookup would count as successful.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	wrong := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' ||
			r == '.')
	}
	if host == "" || len(host) > 253 || strings.HasPrefix(host, ".") || strings.Contains(host, "..") ||
		strings.ContainsFunc(host, wrong) {
		return fmt.Errorf("%q is not a host name or an IP address", clip(host))
	}
	return nil
}

func clip(text string) string {
	if len(text) > 100 {
		return plain.Cut(text, 100) + "..."
	}
	return text
}

// Host returns the host name or IP address in an entry. It returns false for a service and for a
// file.
func Host(entry string) (host string, ok bool) {
	kind, addr, err := parseJoin(entry)
	if err != nil || kind != formHost {
		return "", false
	}
	host, _, err = net.SplitHostPort(addr)
	return host, err == nil
}
