// merge-oracle applies strategic merge patches as Kubernetes does. Each line of the input is {"original", "patch"}, objects of a Pod;
// each line of the output is {"result"} or {"error"}.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type mergeCase struct {
	Original json.RawMessage `json:"original"`
	Patch    json.RawMessage `json:"patch"`
}

type merged struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64*1024*1024)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var one mergeCase
		var out merged
		if err := json.Unmarshal(input.Bytes(), &one); err != nil {
			panic(err)
		}
		result, err := strategicpatch.StrategicMergePatch(one.Original, one.Patch, corev1.Pod{})
		if err != nil {
			out.Error = err.Error()
		} else {
			out.Result = result
		}
		if err := output.Encode(out); err != nil {
			panic(err)
		}
	}
	if err := input.Err(); err != nil {
		panic(err)
	}
}
