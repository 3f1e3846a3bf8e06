# Lets a foreign test suite run to its end against a server that does not pass all of it yet.
#
# Loaded by scripts/conformance into its private copy of the suite, after the suite's own helpers. By
# itself the suite gives up a whole file at the first error that is not a failed assertion, and a
# failed test leaves its connections, and at times a dead server, to those that follow. With this:
#
# * an error inside a test fails that test, and the next one starts on fresh connections;
# * settings that a failed test has changed by config_get_set, and not set back, are set back;
# * a server that died in a failed test is started again for the next one;
# * an error between tests ends the block of that server, is reported under the name
#   "(stopped after LAST TEST)", and the file goes on with its next block;
# * a server that exits instead of starting is an error at once, not after two minutes;
# * with --tls, a client makes its handshake when it connects. Tcl's package leaves it to the first byte
#   that is sent, which the suite sends minutes later at times; Latchkey gives a handshake ten seconds.

# Programs of the suite that run beside it load its helpers too, and have no tests.
if {[llength [info commands test]] == 0} return

namespace eval keep_going {
    variable depth_of_tests 0
    variable last_test "the start"
    variable failed_last 0
    variable settings {}
    variable tls_is_wrapped 0
}

# The suite's durable mode turns errors inside a test into failures, which is wanted; it also takes over
# errors between tests, where it loses count of its servers. So it is on inside tests only.
rename test keep_going::suite_test
proc test {name args} {
    if {$keep_going::failed_last && $keep_going::depth_of_tests == 0} {
        set keep_going::failed_last 0
        keep_going::refresh_servers
    }
    if {$keep_going::depth_of_tests == 0} {
        set keep_going::settings {}
    }
    set failed_before $::num_failed
    set durable_before $::durable
    set ::durable 1
    incr keep_going::depth_of_tests
    set code [catch {uplevel 1 [list keep_going::suite_test $name {*}$args]} result options]
    incr keep_going::depth_of_tests -1
    set ::durable $durable_before
    set keep_going::last_test $name
    if {$::num_failed > $failed_before} {
        set keep_going::failed_last 1
    }
    return -options $options $result
}

# Remembers what a setting was before the test that changes it.
if {[llength [info commands config_get_set]] != 0} {
    rename config_get_set keep_going::suite_config_get_set
    proc config_get_set {name value args} {
        set before [keep_going::suite_config_get_set $name $value {*}$args]
        lappend keep_going::settings $name $before
        return $before
    }
}

rename start_server keep_going::suite_start_server
proc start_server {options {code undefined}} {
    set durable_before $::durable
    set tags_before $::tags
    set servers_before $::servers
    set ::durable 0
    # All servers of an outermost block are new, and what it does before its first test has their clients.
    if {[llength $servers_before] == 0} {
        set keep_going::failed_last 0
    }
    keep_going::wrap_tls_socket
    set status [catch {uplevel 1 [list keep_going::suite_start_server $options $code]} result how]
    set ::durable $durable_before
    if {$status == 1} {
        set ::tags $tags_before
        set ::servers $servers_before
        if {$keep_going::depth_of_tests == 0} {
            incr ::num_failed
            set keep_going::failed_last 1
            send_data_packet $::test_server_fd err \
                "(stopped after $keep_going::last_test) in $::curfile\n$result\n[dict get $how -errorinfo]"
            return ""
        }
    }
    return -options $how $result
}

# A server that is stopped or busy, as tests have it, makes no handshake: then it is left to the first byte.
proc keep_going::tls_socket {args} {
    set channel [::tls::suite_socket {*}$args]
    if {"-async" in $args} { return $channel }
    fconfigure $channel -blocking 0
    for {set attempt 0} {$attempt < 200} {incr attempt} {
        # An error will be met again by whoever uses the channel.
        if {[catch {::tls::handshake $channel} done] || $done} break
        after 5
    }
    fconfigure $channel -blocking 1
    return $channel
}
proc keep_going::wrap_tls_socket {} {
    variable tls_is_wrapped
    if {!$::tls || $tls_is_wrapped} return
    set tls_is_wrapped 1
    rename ::tls::socket ::tls::suite_socket
    interp alias {} ::tls::socket {} ::keep_going::tls_socket
}

# What the suites themselves have for it differs in its argument.
proc keep_going::is_running {pid} {
    expr {![catch {exec kill -0 $pid}]}
}

rename wait_server_started keep_going::suite_wait_server_started
proc wait_server_started {args} {
    # The suites differ in what else they pass, but agree on these two.
    set stdout [lsearch -inline -glob $args */stdout]
    set pid [lindex $args end]
    set told " PID: $pid.*Server initialized|Failed listening on port"
    while {[keep_going::is_running $pid] && ![regexp -- $told [exec cat $stdout]]} {
        after 20
    }
    if {![regexp -- $told [exec cat $stdout]]} {
        set stderr [file join [file dirname $stdout] stderr]
        set words [exec tail -n 4 $stdout $stderr]
        error "the server exited instead of starting: $words"
    }
    keep_going::suite_wait_server_started {*}$args
}

# Gives every running server of the stack a new connection, and starts the innermost one again when it
# is gone. Sets its settings back, the last one first. What cannot be mended shows in the next test.
proc keep_going::refresh_servers {} {
    if {[llength $::servers] == 0} return
    if {![keep_going::is_running [srv 0 pid]]} {
        catch {restart_server 0 true false}
        return
    }
    for {set level 0} {$level < [llength $::servers]} {incr level} {
        catch {
            if {[dict exists [get_srv -$level] client]} { reconnect -$level }
        }
    }
    foreach {before name} [lreverse $keep_going::settings] {
        catch {r config set $name $before}
    }
    set keep_going::settings {}
}
