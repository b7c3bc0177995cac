// An informer of client-go, told on stdout: a line of JSON for each event that its handlers get, and one when it has
// synced. It ends when stdin does. The tests write objects, restart servers, and compare. With -path it is one object
// in protobuf that is told.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "whose client it is")
	kind       = flag.String("client", "dynamic", "dynamic, metadata (protobuf), or rest")
	group      = flag.String("group", "", "API group")
	version    = flag.String("version", "", "API version")
	plural     = flag.String("resource", "", "resource")
	selector   = flag.String("selector", "", "label selector")
	agent      = flag.String("agent", "informer", "user agent")
	path       = flag.String("path", "", "path of the object that is asked for in protobuf, in place of an informer")
	step       = flag.String("step", "step", "label whose value is told with each event")
)

// line is what is told of one event.
type line struct {
	Event string   `json:"event"`
	Name  string   `json:"name,omitempty"`
	Step  string   `json:"step,omitempty"`
	Names []string `json:"names,omitempty"`
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = *agent
	if *path != "" {
		return decode(config)
	}
	tellWire(config)
	informer, err := informerOf(config)
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(handlers()); err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	go informer.Run(stop)
	if cache.WaitForCacheSync(stop, informer.HasSynced) {
		names := informer.GetStore().ListKeys()
		slices.Sort(names)
		tell(line{Event: "synced", Names: names})
	}
	<-stop
	return nil
}

func informerOf(config *rest.Config) (cache.SharedIndexInformer, error) {
	gvr := schema.GroupVersionResource{Group: *group, Version: *version, Resource: *plural}
	narrow := func(options *metav1.ListOptions) { options.LabelSelector = *selector }
	indexers := cache.Indexers{}
	switch *kind {
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicInformer(client, gvr, "", 0, indexers, narrow).Informer(), nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewFilteredMetadataInformer(client, gvr, "", 0, indexers, narrow).Informer(), nil
	case "rest":
		shallow := *config
		gv := gvr.GroupVersion()
		shallow.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
		shallow.GroupVersion, shallow.APIPath = &gv, "/apis"
		client, err := rest.RESTClientFor(&shallow)
		if err != nil {
			return nil, err
		}
		source := cache.NewFilteredListWatchFromClient(client, *plural, "", narrow)
		return cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, indexers), nil
	}
	return nil, fmt.Errorf("no client %q", *kind)
}

func handlers() cache.ResourceEventHandler {
	about := func(event string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			tell(line{Event: "error", Name: err.Error()})
			return
		}
		tell(line{Event: event, Name: accessor.GetName(), Step: accessor.GetLabels()[*step]})
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { about("add", object) },
		UpdateFunc: func(_, object any) { about("update", object) },
		DeleteFunc: func(object any) { about("delete", object) },
	}
}

var out sync.Mutex

func tell(what line) {
	out.Lock()
	defer out.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(what)
}
