# The agent as a shell script that is run once for each case: the request comes in as a line of JSON, and what it prints is
# the answer.
sed 's/.*"input":"\([^"]*\)".*/\1/' | grep -o '[0-9][0-9]*' | awk '{ total += $1 } END { print total + 0 }'
