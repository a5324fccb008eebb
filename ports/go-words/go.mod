module go-words

go 1.22
