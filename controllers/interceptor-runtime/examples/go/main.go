// Lets the pod of a Job write a checkpoint before it is evicted, as checkpoint.rs does: checkpoint NAMESPACE. It takes
// the file of KUBECONFIG, or the ServiceAccount of its pod. Its clock must be right within 10 seconds.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const name = "checkpoint.example.com"

var (
	requests = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1alpha1", Resource: "evictionrequests"}
	pods     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// evictionRequest has the fields of one that an interceptor needs.
type evictionRequest struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Target struct {
			Pod struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"pod"`
		} `json:"target"`
	} `json:"spec"`
	Status struct {
		ActiveInterceptors []string `json:"activeInterceptors"`
		Interceptors       []entry  `json:"interceptors"`
	} `json:"status"`
}

// entry is that of one interceptor. The API server keeps what a patch leaves out.
type entry struct {
	Name           string       `json:"name"`
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	HeartbeatTime  *metav1.Time `json:"heartbeatTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	Message        string       `json:"message"`
}

// ours is our entry if it is our turn.
func (r *evictionRequest) ours() *entry {
	if len(r.Status.ActiveInterceptors) != 1 || r.Status.ActiveInterceptors[0] != name || r.DeletionTimestamp != nil {
		return nil
	}
	for i, entry := range r.Status.Interceptors {
		if entry.Name == name && entry.CompletionTime == nil {
			return &r.Status.Interceptors[i]
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: checkpoint NAMESPACE")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	interceptor := &interceptor{client: client, open: map[types.UID]context.CancelFunc{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	_, err = factory.ForResource(requests).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { interceptor.see(object, false) },
		UpdateFunc: func(old, object any) {
			// A request that was made anew while the watch was interrupted has another UID.
			if old.(metav1.Object).GetUID() != object.(metav1.Object).GetUID() {
				interceptor.see(old, true)
			}
			interceptor.see(object, false)
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			interceptor.see(object, true)
		},
	})
	if err != nil {
		return err
	}
	factory.Start(context.Background().Done())
	select {}
}

// interceptor knows which turns are open.
type interceptor struct {
	client dynamic.Interface
	mutex  sync.Mutex
	open   map[types.UID]context.CancelFunc
}

// see begins a turn of ours, and cancels one that is over.
func (i *interceptor) see(object any, isDeleted bool) {
	var request evictionRequest
	content := object.(*unstructured.Unstructured).UnstructuredContent()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &request); err != nil {
		log.Printf("an eviction request that cannot be read: %v", err)
		return
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	cancel, isOpen := i.open[request.UID]
	isOurs := !isDeleted && request.ours() != nil
	switch {
	case isOurs && !isOpen:
		log.Printf("%s: it begins", request.Name)
		ctx, cancel := context.WithCancel(context.Background())
		i.open[request.UID] = cancel
		go (&turn{client: i.client, request: request, entry: *request.ours()}).serve(ctx)
	case !isOurs && isOpen:
		log.Printf("%s: the turn is over", request.Name)
		cancel()
		delete(i.open, request.UID)
	}
}

// turn is one in the eviction of a pod.
type turn struct {
	client  dynamic.Interface
	request evictionRequest
	entry   entry
}

// serve tries until the turn is over: the watch cancels it then.
func (t *turn) serve(ctx context.Context) {
	for ctx.Err() == nil {
		isDone, err := t.checkpoint(ctx)
		if isDone {
			return
		}
		if err != nil && ctx.Err() == nil {
			log.Printf("%s: %v; it is tried again", t.request.Name, err)
			t.read(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// read reads our entry: after an error it is unknown whether the last one was written.
func (t *turn) read(ctx context.Context) {
	api := t.client.Resource(requests).Namespace(t.request.Namespace)
	if found, err := api.Get(ctx, t.request.Name, metav1.GetOptions{}); err == nil {
		t.take(found)
	}
}

// take remembers our entry in an answer of the API server.
func (t *turn) take(answer *unstructured.Unstructured) {
	var request evictionRequest
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &request)
	if ours := request.ours(); err == nil && ours != nil && request.UID == t.request.UID {
		t.entry = *ours
	}
}

// checkpoint takes the next step. It reads the pod before, so that it may be repeated. It returns whether the turn is
// completed.
func (t *turn) checkpoint(ctx context.Context) (bool, error) {
	target := t.request.Spec.Target.Pod
	api := t.client.Resource(pods).Namespace(t.request.Namespace)
	pod, err := api.Get(ctx, target.Name, metav1.GetOptions{})
	if errors.IsNotFound(err) || (err == nil && pod.GetUID() != target.UID) {
		err := t.report(ctx, "the pod is gone", true)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	told := pod.GetAnnotations()
	if told[name+"/requested"] == "" {
		ask := map[string]any{"metadata": map[string]any{
			"uid": target.UID, "annotations": map[string]string{name + "/requested": "true"},
		}}
		if _, err := patch(ctx, api, target.Name, types.MergePatchType, ask); err != nil {
			return false, err
		}
	}
	if told[name+"/done"] != "" {
		err := t.report(ctx, "checkpoint written", true)
		return err == nil, err
	}
	message := told[name+"/progress"]
	if message == "" {
		message = "waiting for the pod to write a checkpoint"
	}
	return false, t.report(ctx, message, false)
}

// report writes our entry if there is something new, or a heartbeat is due.
func (t *turn) report(ctx context.Context, message string, ends bool) error {
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	change := entry{Name: name, Message: message}
	isNew := message != t.entry.Message
	if t.entry.StartTime == nil {
		change.StartTime, change.HeartbeatTime, isNew = &now, &now, true
	} else if age := now.Sub(t.entry.HeartbeatTime.Time); age >= 3*time.Minute || (isNew && age >= time.Minute) {
		change.HeartbeatTime, isNew = &now, true
	}
	if ends {
		change.CompletionTime, isNew = &now, true
	}
	if !isNew {
		return nil
	}
	// With the UID, no other request of this name is changed.
	body := map[string]any{
		"metadata": map[string]any{"uid": t.request.UID},
		"status":   map[string]any{"interceptors": []entry{change}},
	}
	api := t.client.Resource(requests).Namespace(t.request.Namespace)
	written, err := patch(ctx, api, t.request.Name, types.StrategicMergePatchType, body, "status")
	if err != nil {
		return err
	}
	t.take(written)
	return nil
}

// patch changes an object, and returns it as it is then.
func patch(ctx context.Context, api dynamic.ResourceInterface, name string, kind types.PatchType, body any, sub ...string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return api.Patch(ctx, name, kind, data, metav1.PatchOptions{}, sub...)
}
