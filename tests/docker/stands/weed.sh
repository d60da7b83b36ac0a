#!/bin/sh
# Stands for SeaweedFS' program: `server` is the tests' store on 8333, `shell` reads what is asked for buckets.
case $1 in
server)
	for word in "$@"; do
		case $word in
		-dir=*) DIR=${word#*=} ;;
		-s3.config=*) CONFIG=${word#*=} ;;
		esac
	done
	export DIR CONFIG
	exec node /tests/docker/stands/store.mjs
	;;
shell)
	read -r verb option name
	case $verb in
	s3.bucket.list) wget -q -O - http://s3:8333/buckets ;;
	s3.bucket.create) test "$option" = -name && wget -q -O - --post-data= "http://s3:8333/buckets/$name" ;;
	esac
	;;
esac
