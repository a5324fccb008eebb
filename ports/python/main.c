// CPython as a program of WASI whose standard library is in the module itself.
//
// The library is an archive of compiled modules (archive.py), in read-only data; library.py is a frozen module that finds
// modules in it, and the first that runs. Between core and main initialization (PEP 587) it is made a finder of modules.
#include <Python.h>
#include <internal/pycore_pylifecycle.h>
#include <stdlib.h>
#include <unistd.h>

static const unsigned char library[] = {
#embed "library.code"
};
static const unsigned char archive[] = {
#embed "archive"
};
static const struct _frozen frozen[] = {{"_library", library, sizeof library, 0}, {0}};

static PyObject *memory(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyMemoryView_FromMemory((char *)archive, sizeof archive, PyBUF_READ);
}

static PyMethodDef methods[] = {{"memory", memory, METH_NOARGS, "The archive of the standard library."}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_archive", NULL, 0, methods, NULL, NULL, NULL, NULL};

static PyObject *make_module(void) { return PyModule_Create(&module); }

// Calls a function of the frozen module.
static int call(const char *name) {
    PyObject *library = PyImport_ImportModule("_library");
    PyObject *result = library ? PyObject_CallMethod(library, name, NULL) : NULL;
    int done = result != NULL;
    Py_XDECREF(result);
    Py_XDECREF(library);
    return done;
}

static _Noreturn void leave(PyConfig *config, PyStatus status) {
    PyConfig_Clear(config);
    if (PyStatus_IsExit(status))
        exit(status.exitcode);
    Py_ExitStatusException(status);
}

// Nothing of the library is looked for in folders.
static PyStatus set_paths(PyConfig *config) {
    config->module_search_paths_set = 1;
    wchar_t **paths[] = {&config->prefix, &config->exec_prefix, &config->base_prefix, &config->base_exec_prefix};
    PyStatus status = PyConfig_SetString(config, &config->executable, L"");
    for (size_t i = 0; i < sizeof paths / sizeof *paths && !PyStatus_Exception(status); i++)
        status = PyConfig_SetString(config, paths[i], L"/");
    return status;
}

// The folders of the variable PYTHONPATH, unless an option says that it does not count.
static PyStatus add_given_paths(PyConfig *config) {
    PyStatus status = PyStatus_Ok();
    for (wchar_t *rest = config->pythonpath_env; rest && *rest && !PyStatus_Exception(status);) {
        wchar_t *end = wcschr(rest, L':');
        if (end)
            *end = 0;
        status = PyWideStringList_Append(&config->module_search_paths, rest);
        rest = end ? end + 1 : NULL;
    }
    return status;
}

static PyStatus configure(PyConfig *config, int argc, char **argv) {
    PyPreConfig early;
    PyPreConfig_InitPythonConfig(&early);
    early.utf8_mode = 1;
    PyStatus status = Py_PreInitializeFromBytesArgs(&early, argc, argv);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesArgv(config, argc, argv);
    if (!PyStatus_Exception(status))
        status = set_paths(config);
    if (!PyStatus_Exception(status))
        status = PyConfig_Read(config);
    if (!PyStatus_Exception(status))
        status = add_given_paths(config);
    config->_init_main = 0;
    return status;
}

int main(int argc, char **argv) {
    // Paths are relative to the working folder.
    const char *folder = getenv("PWD");
    if (folder)
        (void)chdir(folder);
    // The other one needs a terminal's modes.
    setenv("PYTHON_BASIC_REPL", "1", 1);
    PyImport_FrozenModules = frozen;
    PyImport_AppendInittab("_archive", make_module);

    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    PyStatus status = configure(&config, argc, argv);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    if (PyStatus_Exception(status))
        leave(&config, status);
    if (!call("install")) {
        PyErr_Print();
        return 1;
    }
    status = _Py_InitializeMain();
    if (PyStatus_Exception(status))
        leave(&config, status);
    PyConfig_Clear(&config);
    if (!call("settle")) {
        PyErr_Print();
        return 1;
    }
    return Py_RunMain();
}
