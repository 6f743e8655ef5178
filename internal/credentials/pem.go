package credentials

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// parseAuthorities refuses the whole text if any part is unreadable, unlike
// CertPool.AppendCertsFromPEM. Otherwise a half-written file could exclude half of the cluster.
func parseAuthorities(text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	count := 0
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a block of type %q, want certificates of authorities only", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", count+1, err)
		}
		pool.AddCert(cert)
		count++
	}
	if bytes.Contains(text, []byte("-----BEGIN")) {
		return nil, fmt.Errorf("a block after certificate %d is cut off", count)
	}
	if count == 0 {
		return nil, errors.New("holds no certificate in PEM")
	}
	return pool, nil
}
