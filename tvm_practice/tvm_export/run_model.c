/* Runs a model that TVM compiled, where there is TVM's runtime and no Python.
 *
 *     run_model LIBRARY < inputs > outputs
 *
 * A tensor is a line of numbers and then its bytes. The numbers are DLPack's code of its type, its
 * bits, how many dimensions it has, and its extents. Only TVM's C interface is used: a C++ one
 * would tie the program to the compiler and the C++ library that TVM was built with. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tvm/ffi/c_api.h>

enum { MOST_INPUTS = 64, ALIGNMENT = 64 };

static void fail(const char* what, const char* name) {
  fprintf(stderr, "%s: %s\n", what, name);
  exit(1);
}

/* What follows the header of an object is its content. */
static void* content(TVMFFIObjectHandle object) { return (char*)object + sizeof(TVMFFIObject); }

static void check(int status) {
  if (status == 0) return;
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (error == NULL) fail("TVM failed", "no message");
  TVMFFIErrorCell* cell = content(error);
  fprintf(stderr, "%.*s: %.*s\n", (int)cell->kind.size, cell->kind.data, (int)cell->message.size,
          cell->message.data);
  exit(1);
}

static TVMFFIAny call(TVMFFIObjectHandle function, TVMFFIAny* arguments, int count) {
  TVMFFIAny result = {.type_index = kTVMFFINone};
  check(TVMFFIFunctionCall(function, arguments, count, &result));
  return result;
}

static TVMFFIObjectHandle global(const char* name) {
  TVMFFIByteArray bytes = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  check(TVMFFIFunctionGetGlobal(&bytes, &function));
  if (function == NULL) fail("the runtime has no function", name);
  return function;
}

static TVMFFIAny integer(int64_t value) {
  return (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = value};
}

static TVMFFIAny text(const char* value) {
  return (TVMFFIAny){.type_index = kTVMFFIRawStr, .v_c_str = value};
}

static TVMFFIObjectHandle method(TVMFFIAny module, const char* name) {
  TVMFFIAny arguments[] = {module, text(name), {.type_index = kTVMFFIBool, .v_int64 = 0}};
  TVMFFIAny found = call(global("ffi.ModuleGetFunction"), arguments, 3);
  if (found.type_index != kTVMFFIFunction) fail("the library has no function", name);
  return found.v_obj;
}

static void keep(DLManagedTensor* tensor) { (void)tensor; /* the program ends after one run */ }

/* The next tensor of standard input; 0 at its end. */
static int read_tensor(TVMFFIAny* tensor) {
  int code, bits, dimensions;
  if (scanf("%d %d %d", &code, &bits, &dimensions) != 3) return 0;
  DLManagedTensor* managed = calloc(1, sizeof *managed);
  int64_t* shape = calloc(2 * (size_t)dimensions + 1, sizeof *shape);
  int64_t* strides = shape + dimensions;
  for (int i = 0; i < dimensions; ++i)
    if (scanf("%" SCNd64, &shape[i]) != 1) fail("standard input", "an extent is missing");
  getchar(); /* the end of the line */
  int64_t elements = 1;
  for (int i = dimensions - 1; i >= 0; --i) {
    strides[i] = elements;
    elements *= shape[i];
  }
  size_t bytes = (size_t)elements * ((size_t)bits / 8);
  void* data = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
  if (fread(data, 1, bytes, stdin) != bytes) fail("standard input", "a tensor is cut off");
  managed->dl_tensor = (DLTensor){
      .data = data,
      .device = {kDLCPU, 0},
      .ndim = dimensions,
      .dtype = {(uint8_t)code, (uint8_t)bits, 1},
      .shape = shape,
      .strides = strides,
  };
  managed->deleter = keep;
  TVMFFIObjectHandle handle = NULL;
  check(TVMFFITensorFromDLPack(managed, ALIGNMENT, 1, &handle));
  *tensor = (TVMFFIAny){.type_index = kTVMFFITensor, .v_obj = handle};
  return 1;
}

static void write_tensors(TVMFFIAny value) {
  if (value.type_index == kTVMFFIArray) {
    TVMFFISeqCell* items = content(value.v_obj);
    for (int64_t i = 0; i < items->size; ++i) write_tensors(((TVMFFIAny*)items->data)[i]);
    return;
  }
  if (value.type_index != kTVMFFITensor) fail("main", "it returned something else than tensors");
  DLTensor* tensor = content(value.v_obj);
  size_t bytes = tensor->dtype.bits / 8;
  printf("%d %d %d", tensor->dtype.code, tensor->dtype.bits, tensor->ndim);
  for (int i = 0; i < tensor->ndim; ++i) {
    printf(" %" PRId64, tensor->shape[i]);
    bytes *= (size_t)tensor->shape[i];
  }
  printf("\n");
  fwrite((char*)tensor->data + tensor->byte_offset, 1, bytes, stdout);
}

int main(int count, char** words) {
  if (count != 2) fail("usage", "run_model LIBRARY < inputs > outputs");
  TVMFFIAny path = text(words[1]);
  TVMFFIAny library = call(global("ffi.ModuleLoadFromFile"), &path, 1);
  TVMFFIAny machine = call(method(library, "vm_load_executable"), NULL, 0);
  const int pooled_memory = 2;
  TVMFFIAny where[] = {integer(kDLCPU), integer(0), integer(pooled_memory)};
  call(method(machine, "vm_initialization"), where, 3);
  TVMFFIAny inputs[MOST_INPUTS];
  int given = 0;
  while (given < MOST_INPUTS && read_tensor(&inputs[given])) ++given;
  write_tensors(call(method(machine, "main"), inputs, given));
  return 0;
}
