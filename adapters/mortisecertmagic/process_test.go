package mortisecertmagic

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, obtain) }

// obtain runs in a process of its own.
func obtain(ctx context.Context, node *mortise.Node) error {
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{Logger: zap.NewNop(),
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }})
	config = certmagic.New(cache, certmagic.Config{
		Storage: Wrap(&certmagic.FileStorage{Path: os.Getenv("FILES")}, node, Options{}),
		Issuers: []certmagic.Issuer{issuer{}}, Logger: zap.NewNop(),
	})
	if err := config.ObtainCertSync(ctx, "example.com"); err != nil {
		return err
	}
	fmt.Println("has a certificate")
	return nil
}

// issuer stops the first process that orders a certificate, and signs for the others.
type issuer struct{}

func (issuer) IssuerKey() string { return "test" }

func (issuer) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if os.Remove(os.Getenv("BAIT")) == nil { // succeeds in one process only
		fmt.Println("inside")
		select {}
	}
	fmt.Println("ordered")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: request.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}
