//go:build tools

// Package kwok pins the program that plays the kubelets in Drydock's tests.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
