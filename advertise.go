package mortise

import (
	"fmt"
	"net"
)

// advertised finds the address at which others reach a node that listens at listening. A configured address wins, then a bind address
// that names a host; else it is the address of the interface over which the first host of Join is reached, which is the one that works
// in a container with several. No packet is sent for that.
func advertised(c Config, listening net.Addr) (string, error) {
	if c.Advertise != "" {
		return c.Advertise, nil
	}
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return "", fmt.Errorf("mortise: listening at %q, which is not host:port: set Config.Advertise", listening)
	}
	if !isUnspecified(host) {
		return listening.String(), nil
	}
	for _, address := range c.Join {
		conn, err := net.Dial("udp", address)
		if err != nil {
			continue
		}
		local, _, err := net.SplitHostPort(conn.LocalAddr().String())
		_ = conn.Close()
		if err == nil && !isUnspecified(local) {
			return net.JoinHostPort(local, port), nil
		}
	}
	return "", fmt.Errorf("mortise: Config.Bind %q names no host and no route leads to any address of Config.Join: set Config.Advertise to the host:port at which the other instances reach this one", c.Bind)
}
