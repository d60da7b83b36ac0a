/* native_image.h - layout of the images of native_map.h, for their writer and reader. */
#ifndef TW_NATIVE_IMAGE_H
#define TW_NATIVE_IMAGE_H

#define NATIVE_MAGIC "TWELF1\0"
enum { NATIVE_MAGIC_BYTES = 8, NATIVE_HEADER = 64, NATIVE_RECORD = 24 };

#endif
