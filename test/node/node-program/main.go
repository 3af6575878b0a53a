// The node of the tests: kubelet, controller manager, scheduler and kube-proxy in one binary.
//
// Usage: node-program kubelet|manager|scheduler|kube-proxy <flags of that component>
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	_ "k8s.io/component-base/metrics/prometheus/clientgo"
)

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	component := os.Args[1]
	command := commandOf(component)
	if command == nil {
		usage()
	}
	// The kubelet parses os.Args itself.
	os.Args = append([]string{component}, os.Args[2:]...)
	command.SetArgs(os.Args[1:])
	os.Exit(cli.Run(command))
}

func commandOf(component string) *cobra.Command {
	switch component {
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	case "manager":
		return manager.NewControllerManagerCommand()
	case "scheduler":
		return scheduler.NewSchedulerCommand()
	case "kube-proxy":
		return proxy.NewProxyCommand()
	}
	return nil
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: node-program kubelet|manager|scheduler|kube-proxy <flags>")
	os.Exit(2)
}
