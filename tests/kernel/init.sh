#!/bin/busybox sh
# init.sh - process 1 of the test machine; run.py packs it as /init.
#
# First time, in the initramfs: loads modules, copies /tree to a tmpfs and starts
# again there, because pivot_root(2) refuses to leave an initramfs. Second time:
# mounts, users, cgroups, then every job of /jobs, each with its output and exit
# code on the second serial port. The first is the kernel's console.
export PATH=/test:/usr/local/bin:/usr/bin:/usr/sbin

if [ ! -d /jobs ]; then
	/usr/bin/busybox --install -s /usr/bin
	mount -t proc proc /proc
	mount -t devtmpfs dev /dev
	while read -r module; do
		insmod "/modules/$module" || echo "init: $module does not load"
	done </modules/order
	mkdir /new
	mount -t tmpfs -o mode=0755 root /new
	cp -a /tree/. /new/
	umount /proc
	mount -o move /dev /new/dev
	exec switch_root /new /init
fi

. /jobs/config # MARK, TIMEOUT, DELEGATE
for applet in $(busybox --list); do
	[ -e "/usr/bin/$applet" ] || [ -e "/usr/sbin/$applet" ] ||
		ln -s busybox "/usr/bin/$applet"
done
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sys /sys
mount -t securityfs -o nosuid,nodev,noexec security /sys/kernel/security
mkdir -p /dev/pts /dev/shm /run /tmp /home /root /var
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
ln -s /run /var/run
mount -t devpts -o mode=0620,ptmxmode=0666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=0755 run /run
# A real file system where copy-on-write layers and temporary files are.
if [ -b /dev/vda ] && mount -t ext4 /dev/vda /home; then
	mkdir -m 1777 /home/tmp
	mount -o bind /home/tmp /tmp
else
	echo "init: no disk"
	chmod 1777 /tmp
fi
mkdir -p /home/user /run/user/1000
chown 1000:1000 /home/user /run/user/1000
chmod 0700 /home/user /run/user/1000
ip link set lo up
hostname machine
[ -c /dev/fuse ] && chmod 0666 /dev/fuse

# As systemd leaves it: a part of the tree belongs to the user, whose session is
# a leaf of that part. Without DELEGATE as the kernel leaves it: no controller on.
mount -t cgroup2 -o nosuid,nodev,noexec,nsdelegate cgroup2 /sys/fs/cgroup
manager=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service
mkdir -p "$manager/session.scope"
if [ "$DELEGATE" = 1 ]; then
	for d in /sys/fs/cgroup /sys/fs/cgroup/user.slice "${manager%/*}" "$manager"; do
		echo '+memory +pids +cpu' >"$d/cgroup.subtree_control"
	done
	for d in "$manager" "$manager/session.scope"; do
		chown 1000:1000 "$d" "$d/cgroup.procs" "$d/cgroup.threads" "$d/cgroup.subtree_control"
	done
fi

stty -F /dev/ttyS1 raw -echo
exec 3>/dev/ttyS1
mkfifo /run/out
printf '\036%s ready %s\036' "$MARK" "$(uname -r)" >&3

# job N WHO: its output, then its exit code. What it leaves running cannot hold us.
job() {
	cat /run/out >&3 &
	reader=$!
	(
		exec </dev/null >/run/out 2>&1 3>&-
		if [ "$2" = user ]; then
			echo 0 >"$manager/session.scope/cgroup.procs"
			export HOME=/home/user XDG_RUNTIME_DIR=/run/user/1000
			cd /home/user || exit 97
			exec setsid timeout -k 3 "$TIMEOUT" su user -c "exec sh /jobs/$1"
		fi
		export HOME=/root
		cd /root || exit 97
		exec setsid timeout -k 3 "$TIMEOUT" sh "/jobs/$1"
	)
	code=$?
	(sleep 3; kill "$reader") 2>/dev/null &
	wait "$reader" 2>/dev/null
	printf '\036%s end %s %s\036' "$MARK" "$1" "$code" >&3
}

while read -r n who; do
	job "$n" "$who"
done </jobs/list
exec 3>&-
poweroff -f
