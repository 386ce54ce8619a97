# cmake -DIN=file -DOUT=file.c -DNAME=symbol -P EmbedFile.cmake
# Writes `const unsigned char NAME[]` and `const unsigned long NAME_len`.
file(READ ${IN} hex HEX)
file(SIZE ${IN} size)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "extern const unsigned char ${NAME}[];\nextern const unsigned long ${NAME}_len;\n"
  "const unsigned char ${NAME}[] = {\n${bytes}\n0};\nconst unsigned long ${NAME}_len = ${size};\n")
