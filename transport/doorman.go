package transport

import (
	"io"
	"net"

	"google.golang.org/grpc/credentials"
)

// doorman does the handshake of accepted connections for gRPC. It also says why somebody was not let in, which gRPC itself would keep to
// itself, and it leads links, which do not speak HTTP/2, to another door.
type doorman struct {
	credentials.TransportCredentials
	port *Port
}

// ServerHandshake is TransportCredentials'. gRPC limits its time.
func (d doorman) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := d.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		if !wentAway(err) {
			d.port.notices.warn("transport: refused a connection", "from", raw.RemoteAddr(), "why", d.port.config.TLS.Explain(err))
		}
		return conn, info, err
	}
	heard := &reheard{Conn: conn}
	if _, err := io.ReadFull(conn, heard.head[:]); err != nil {
		return nil, nil, err
	}
	if heard.head[0] == linkPreface[0] {
		d.port.tasks.Go(func() { d.port.welcome(raw, heard) })
		return nil, nil, credentials.ErrConnDispatched
	}
	return heard, info, nil
}

// Clone is TransportCredentials'.
func (d doorman) Clone() credentials.TransportCredentials {
	return doorman{d.TransportCredentials.Clone(), d.port}
}

// reheard is a connection whose first byte was read and is read again.
type reheard struct {
	net.Conn
	head [1]byte
	done bool
}

// Read is net.Conn's.
func (c *reheard) Read(b []byte) (int, error) {
	if c.done || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.done = true
	return copy(b, c.head[:]), nil
}
