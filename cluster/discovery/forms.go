package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// form is the kind of an entry of Join: where its addresses come from.
type form uint8

const (
	formHost    form = iota // host:port, also written dns:///host:port: all addresses of the host
	formService             // srv:///name: hosts and ports from SRV records, and all addresses of those hosts
	formFile                // file:///path: a list of host:port, and all addresses of those hosts
	formFunc                // Config.Func: a list likewise
)

// joinFunc is what Func is called where entries are named for people: as the user knows it.
const joinFunc = "Config.JoinFunc"

// joinForms ends the refusal of an entry.
const joinForms = "want host:port, dns:///name:port, srv:///name or file:///path"

// Check says what is wrong with one entry of Join, or returns nil. Nothing is looked up.
func Check(entry string) error {
	_, _, err := parseJoin(entry)
	return err
}

// parseJoin splits an entry into its form and what that form needs: host:port, the name of a
// service, or a path.
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
		if name == "" || strings.ContainsRune(name, 0) || len(name) > pathBytesMax {
			return 0, "", fmt.Errorf("%q names no file; %s", clip(entry), joinForms)
		}
		return formFile, localPath(rest), nil
	case scheme == "srv":
		if err := checkHost(name); err != nil || strings.Contains(name, ":") {
			return 0, "", fmt.Errorf("%q is not srv:/// and the name of SRV records, which give the ports; %s",
				clip(entry), joinForms)
		}
		return formService, name, nil
	}
	if err := checkListed(name); err != nil {
		return 0, "", fmt.Errorf("%q: %w; %s", clip(entry), err, joinForms)
	}
	return formHost, name, nil
}

// pathBytesMax is what systems take at most.
const pathBytesMax = 4096

// localPath is the path behind file://, literally: nothing in it is an escape. Where drives have
// letters it is /C:/x.
func localPath(path string) string {
	if len(path) > 2 && path[0] == '/' && path[2] == ':' && filepath.VolumeName(path[1:]) != "" {
		path = path[1:]
	}
	return filepath.FromSlash(path)
}

// checkListed says what is wrong with a host:port at which an instance is to be looked for.
func checkListed(addr string) error {
	if len(addr) > AddrBytesMax {
		return fmt.Errorf("%q has %d bytes, more than %d", clip(addr), len(addr), AddrBytesMax)
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

// AddrBytesMax is the length of the longest address at which an instance is looked for.
const AddrBytesMax = 200

// CheckAddr says what is wrong with a host:port, or returns nil.
func CheckAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not host:port", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || len(addr) > AddrBytesMax {
		return fmt.Errorf("%q is not host:port with a host and a port from 1 to 65535", addr)
	}
	return nil
}

// checkHost refuses what is neither an IP address nor can be a name in DNS. The resolver would say
// of it that it does not exist, which counts as an answer: no instance is there.
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

// clip shortens what is quoted in an error.
func clip(text string) string {
	if len(text) > 100 {
		return text[:100] + "..."
	}
	return text
}

// Host returns the host of an entry that names one, by name or by IP address.
func Host(entry string) (host string, ok bool) {
	kind, addr, err := parseJoin(entry)
	if err != nil || kind != formHost {
		return "", false
	}
	host, _, err = net.SplitHostPort(addr)
	return host, err == nil
}
