# What /etc/latchkey/latchkey.conf says other than the defaults of conf/latchkey.conf.
s|^bind .*|bind 127.0.0.1 -::1|
s|^logfile .*|logfile /var/log/latchkey/latchkey.log|
s|^dir .*|dir /var/lib/latchkey|
