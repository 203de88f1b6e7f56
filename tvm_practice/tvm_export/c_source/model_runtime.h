/* What the models of a program share: errors and threads. */
#ifndef MODEL_RUNTIME_H
#define MODEL_RUNTIME_H

/* The message of the last error; empty before the first. */
const char* model_last_error(void);

/* How many threads run parallel loops, the caller among them: 1 to 64. */
void model_use_threads(int count);

#endif
