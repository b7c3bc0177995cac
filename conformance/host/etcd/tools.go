//go:build tools

// Package etcd pins the etcd that stores for the control plane of Drydock's tests, and for Drydock itself.
package etcd

import (
	_ "go.etcd.io/etcd/server/v3"
)
