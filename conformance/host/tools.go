//go:build tools

// Package host pins the programs of the Kubernetes control plane that Drydock's tests run against, and kwok, which plays
// the kubelets.
package host

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/sample-apiserver"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
