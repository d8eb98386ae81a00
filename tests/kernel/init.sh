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
	while read -r module arguments; do
		# shellcheck disable=SC2086  # they are words
		insmod "/modules/$module" $arguments || echo "init: $module does not load"
	done </modules/order
	mkdir /new
	mount -t tmpfs -o mode=0755 root /new
	cp -a /tree/. /new/
	umount /proc
	mount -o move /dev /new/dev
	exec switch_root /new /init
fi

. /jobs/config # MARK, DELEGATE
for applet in $(busybox --list); do
	[ -e "/usr/bin/$applet" ] || [ -e "/usr/sbin/$applet" ] ||
		busybox ln -s busybox "/usr/bin/$applet"
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
# A real file system where copy-on-write layers and temporary files are. Busybox has an mke2fs
# of its own, which its shell takes.
if ! /usr/bin/mke2fs -q -t ext4 -O ext_attr /dev/ram0 || ! mount -t ext4 /dev/ram0 /home; then
	echo "init: no disk"
	poweroff -f
fi
mkdir -m 1777 /home/tmp
mount -o bind /home/tmp /tmp
mkdir -p /home/user /run/user/1000
chown 1000:1000 /home/user /run/user/1000
chmod 0700 /home/user /run/user/1000
ip link set lo up
# Off by default from 6.2 on; here it must be our filter that refuses.
[ ! -e /proc/sys/dev/tty/legacy_tiocsti ] || echo 1 >/proc/sys/dev/tty/legacy_tiocsti
hostname machine
# A second host, files.test in /etc/hosts, behind a wire: a name has no address of our own.
mkdir /srv
echo 'the page' >/srv/index.html
if ip link add w0 type veth; then # its other end is called veth0
	unshare -n sleep 1000000 &
	other=$!
	for _ in 1 2 3 4 5 6 7 8 9; do # until it is in a network of its own
		[ ! -e /sys/class/net/veth0 ] || sleep 0.3
		ip link set veth0 netns "$other" 2>/dev/null
	done
	nsenter -t "$other" -n sh -c 'ip addr add 1.2.3.10/24 dev veth0 && ip link set veth0 up &&
		httpd -p 1.2.3.10:8080 -h /srv'
	ip addr add 1.2.3.253/24 dev w0
	ip link set w0 up
fi
httpd -p 127.0.0.1:8080 -h /srv
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

# job N WHO SECONDS: its output, then its exit code. What it leaves running cannot hold us.
# WHO is user, root, or both: root in the user's part of the cgroups, to become the user.
job() {
	cat /run/out >&3 &
	reader=$!
	(
		exec </dev/null >/run/out 2>&1 3>&-
		[ "$2" = root ] || echo 0 >"$manager/session.scope/cgroup.procs"
		if [ "$2" = user ]; then
			export HOME=/home/user XDG_RUNTIME_DIR=/run/user/1000
			cd /home/user || exit 97
			exec setsid timeout -k 3 "$3" env HOME=/home/user USER=user LOGNAME=user SHELL=/bin/sh \
				setpriv --reuid=1000 --regid=1000 --init-groups sh "/jobs/$1"
		fi
		export HOME=/root
		cd /root || exit 97
		exec setsid timeout -k 3 "$3" sh "/jobs/$1"
	)
	code=$?
	(sleep 3; kill "$reader") 2>/dev/null &
	wait "$reader" 2>/dev/null
	printf '\036%s end %s %s\036' "$MARK" "$1" "$code" >&3
}

while read -r n who seconds; do
	job "$n" "$who" "$seconds"
done </jobs/list
exec 3>&-
poweroff -f
