#!/bin/sh
touch "$(dirname "$0")/ran"
exit 1
