package transport

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// The settings of client and server must match: a gRPC server closes the connection of a client
// that pings too often.
const (
	serverWindow     = 256 << 10        // limit of unread bytes for calls from other instances
	clientWindow     = 1 << 20          // limit of unread bytes for calls from this node, which always reads them
	connWindow       = 2 << 20          // limits nothing, because gRPC enlarges it even if nothing is read
	keepaliveTime    = 10 * time.Second // minimum for a gRPC client
	keepaliveTimeout = 5 * time.Second
	keepaliveMinimum = 5 * time.Second // shortest interval that the server accepts
	headerBytes      = 16 << 10
	// The default of 32 KiB is not faster, and would be half of the memory of an idle connection.
	readBuffer = 8 << 10
)

func (p *base) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		// gRPC's estimate of the best window would send additional messages.
		grpc.StaticStreamWindowSize(serverWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout,
			MaxConnectionIdle: 10 * time.Minute}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinimum,
			PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(messageBytes),
		grpc.MaxSendMsgSize(messageBytes),
		grpc.MaxConcurrentStreams(callsEach),
		grpc.MaxHeaderListSize(headerBytes),
		grpc.ConnectionTimeout(p.config.DialTimeout),
		grpc.SharedWriteBuffer(true),
		grpc.ReadBufferSize(readBuffer),
		grpc.WaitForHandlers(true),
	}
}

func (p *base) clientOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), // Port.connect performs TLS
		grpc.WithStaticStreamWindowSize(clientWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout,
			PermitWithoutStream: true}),
		// The handshake may take as long as the backoff or the minimum, whichever is larger. The
		// backoff has no other effect here, and must not exceed the minimum.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: p.config.DialTimeout,
			Multiplier: 1, MaxDelay: p.config.DialTimeout}, MinConnectTimeout: p.config.DialTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytes), grpc.MaxCallSendMsgSize(messageBytes)),
		grpc.WithMaxHeaderListSize(headerBytes),
		grpc.WithSharedWriteBuffer(true),
		grpc.WithReadBufferSize(readBuffer),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableHealthCheck(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
	}
}
